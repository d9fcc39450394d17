"""Bundles of the engine and its tools for hosts without a network."""
