"""Targets that can serve a request, and their current state."""
