"""Money, prices, usage, budgets and double-entry postings: exact to the pico-dollar."""
