"""`Idempotency-Key`: dispatched once, answered again."""
