"""Sums of attempts and samples by minute, hour and day, which can be verified from rows."""
