"""Metrics for Prometheus, with closed label sets."""
