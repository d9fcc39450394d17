"""Verification that the ledger adds up and is unchanged: `breakeven ledger verify`."""
