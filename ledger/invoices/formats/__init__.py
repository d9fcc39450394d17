"""Readers of invoice formats of providers and clouds, one file per format."""
