"""Hits, misses and what they avoided are counted; every series is there from the start."""

from prometheus_client import CollectorRegistry, generate_latest

from gateway.telemetry.metrics.requests import RequestMetrics
from gateway.telemetry.metrics.response_cache import CacheMetrics


def test_they_are_counted_with_the_next_flush() -> None:
    registry = CollectorRegistry()
    metrics = RequestMetrics(registry, models=(), targets=())
    assert "breakeven_response_cache" not in generate_latest(registry).decode()
    cache = CacheMetrics(registry, metrics.count)
    cache.count_lookup("hit")
    cache.count_avoided("api", 250_000_000_000)
    cache.set_used_bytes(4096)
    metrics.flush()
    shown = generate_latest(registry).decode()
    assert 'breakeven_response_cache_total{result="hit"} 1.0' in shown
    assert 'breakeven_response_cache_total{result="miss"} 0.0' in shown
    assert 'breakeven_response_cache_avoided_usd_total{backend="api"} 0.25' in shown
    assert "breakeven_response_cache_bytes 4096.0" in shown
