"""Processes of a host other than its workers: parent, telemetry, upkeep, own engines."""
