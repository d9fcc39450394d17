"""What a token costs: where prices come from, which one counts, what an import changes."""
