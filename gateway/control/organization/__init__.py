"""Usage and costs as OpenAI's organisation endpoints have them."""
