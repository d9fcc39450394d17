"""Dashboard for finance and SRE; reads the ledger, changes go through the gateway."""
