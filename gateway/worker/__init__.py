"""One worker process: its composition root, ASGI application, and followers of the ledger."""
