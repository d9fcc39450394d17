"""Prices of the gateway: from the configuration, as JSON, and followed while it runs."""
