"""Invoices of providers and clouds, compared with the ledger."""
