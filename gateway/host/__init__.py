"""The processes of a host around its workers: parent, telemetry, upkeep, own engines."""
