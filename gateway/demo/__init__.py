"""Demo: a month of demand replayed through the real router, then live traffic."""
