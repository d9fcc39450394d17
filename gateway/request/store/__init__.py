"""Answers that are kept, so that a client may go on with them: OpenAI's `store`."""
