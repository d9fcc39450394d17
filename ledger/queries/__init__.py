"""Reads for pages and commands by subject. `reads` has all of them in one namespace."""
