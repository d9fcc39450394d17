"""Endpoints for stored answers and conversations."""
