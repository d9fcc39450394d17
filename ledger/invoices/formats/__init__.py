"""Readers of invoices as providers and clouds give them: one file a format."""
