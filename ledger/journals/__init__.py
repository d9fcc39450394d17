"""A worker's journal of records for the ledger, durable before clients get the last byte."""
