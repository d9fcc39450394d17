"""Requests and tokens a minute, and where requests wait."""
