"""Checks of a configuration, one file per subject: pure functions from settings to faults."""
