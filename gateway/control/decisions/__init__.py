"""Decisions as they are kept: made again, or made of what was only supposed."""
