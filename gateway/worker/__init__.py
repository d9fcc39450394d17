"""Worker process: composition root, ASGI application, and followers of the ledger."""
