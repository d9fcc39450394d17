"""What one host runs around its workers: the parent process, telemetry, upkeep, own engines."""
