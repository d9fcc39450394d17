"""The ledger as tables for other tools: attempts and FOCUS, as CSV or Parquet."""
