"""Hosts that use the same engines tell each other what they have in flight."""
