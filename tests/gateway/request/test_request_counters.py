"""The interface of the counts, and that telemetry's classes implement every method of it."""

from prometheus_client import CollectorRegistry

from gateway.request.request_counters import (
    AttemptLabels,
    AttemptSums,
    QueueCounters,
    RequestCounters,
)
from gateway.telemetry.metrics.requests import RequestMetrics


def test_telemetry_implements_the_interfaces() -> None:
    metrics = RequestMetrics(CollectorRegistry(), models=["chat"], targets=["alpha/m"])
    for interface, counters in ((RequestCounters, metrics), (QueueCounters, metrics.policies)):
        names = {name for name in vars(interface) if not name.startswith("_")}
        assert names
        assert [name for name in sorted(names) if not hasattr(counters, name)] == []


def test_attempts_with_equal_labels_share_their_sums() -> None:
    metrics = RequestMetrics(CollectorRegistry(), models=["chat"], targets=["alpha/m"])
    labels = AttemptLabels("chat", "alpha/m", "api", "cheapest", "finished", True, None)
    metrics.sums_of(labels).attempts += 1
    assert metrics.sums_of(AttemptLabels(*labels)) == AttemptSums(attempts=1)
    assert metrics.sums_of(labels._replace(status="timeout")) == AttemptSums()


def test_what_the_request_path_counts_reaches_the_registry() -> None:
    registry = CollectorRegistry()
    counters = RequestMetrics(registry, models=["chat"], targets=["alpha/m"])
    counters.count_refusal("budget")
    counters.count_static_decision("telemetry", 0)
    counters.count_undecided("office-hours")
    counters.count_shadow("office-hours", agrees=False)
    counters.observe_attempt("alpha/m", 2.0, 0.5)
    counters.observe_attempt("unknown", 2.0, None)
    counters.flush()
    value = registry.get_sample_value
    assert value("breakeven_refusals_total", {"reason": "budget"}) == 1
    assert value("breakeven_static_decisions_total", {"cause": "telemetry"}) == 0
    assert value("breakeven_policy_undecided_total", {"policy": "office-hours"}) == 1
    labels = {"policy": "office-hours", "agrees": "no"}
    assert value("breakeven_shadow_decisions_total", labels) == 1
    assert value("breakeven_request_duration_seconds_sum", {"target": "other"}) == 2.0
    assert value("breakeven_ttft_seconds_count", {"target": "alpha/m"}) == 1
    assert value("breakeven_ttft_seconds_count", {"target": "other"}) is None
