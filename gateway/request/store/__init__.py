"""Stored answers that clients can continue: OpenAI's `store`."""
