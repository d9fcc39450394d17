"""The books as tables for others: attempts and FOCUS, as CSV or Parquet."""
