"""Token prices: where they come from, which one counts, what an import changes."""
