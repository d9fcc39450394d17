"""Recorded decisions, repeated from the ledger, and decisions on hypothetical requests."""
