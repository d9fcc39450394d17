"""Money, prices, usage, budgets and double-entry postings: one row per attempt, exact to the pico-dollar."""
