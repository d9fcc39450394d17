"""Traces and metrics by OpenTelemetry's protocol, where the configuration names a collector."""
