"""Fleets that size themselves: what a plan wants, what is there, and how one becomes the other."""
