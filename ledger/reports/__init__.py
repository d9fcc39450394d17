"""Reports from the ledger: spend, changes between periods, the timing of one request."""
