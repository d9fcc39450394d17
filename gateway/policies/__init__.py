"""Policies and overrides, and how a running worker follows them."""
