"""Shadows and undecided conditions are counted by policy."""

from prometheus_client import CollectorRegistry, generate_latest

from gateway.telemetry.metrics.requests import RequestMetrics


def test_they_are_counted_with_the_next_flush():
    registry = CollectorRegistry()
    metrics = RequestMetrics(registry, models=(), targets=())
    metrics.count(metrics.policies.shadows, "watch", "no")
    metrics.count(metrics.policies.undecided, "secret")
    metrics.flush()
    shown = generate_latest(registry).decode()
    assert 'breakeven_shadow_decisions_total{agrees="no",policy="watch"} 1.0' in shown
    assert 'breakeven_policy_undecided_total{policy="secret"} 1.0' in shown
