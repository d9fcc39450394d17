"""Checks of a configuration, one file for each subject: pure functions from settings to faults."""
