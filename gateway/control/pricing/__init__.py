"""Prices for the gateway: as configured, as programs read them, and followed while it runs."""
