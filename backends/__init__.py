"""Clients of model servers, and supervision of own engines."""
