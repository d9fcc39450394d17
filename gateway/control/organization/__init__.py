"""Usage and costs in the form of OpenAI's organization endpoints."""
