"""The parts of `ledger.writer`, which apply journals to the database exactly once."""
