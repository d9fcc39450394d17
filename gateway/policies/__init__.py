"""Policies and overrides: rules, matching and effects, without I/O."""
