"""Metrics, OpenTelemetry and drift; implements interfaces that `gateway.request` declares."""
