"""Attempts and samples added up by minute, hour and day, beside the rows and provable by them."""
