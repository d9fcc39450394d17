"""The proof that the books add up and are as they were written: `breakeven ledger verify`."""
