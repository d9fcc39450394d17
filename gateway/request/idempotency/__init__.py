"""`Idempotency-Key`: a request is dispatched once, and its answer may be replayed."""
