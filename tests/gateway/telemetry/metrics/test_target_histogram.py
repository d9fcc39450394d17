"""What waits for a flush is in the registry as if each observation had gone there by itself."""

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram

from gateway.telemetry.metrics.target_histogram import TargetHistogram

BOUNDS = (0.25, 0.5, 4.0)
SEEN = st.sampled_from((0.0, 0.25, 0.26, 0.5, 3.0, 4.0, 5.0))  # bounds and what lies between


@given(st.lists(st.tuples(st.sampled_from(("a", "b")), SEEN, st.booleans())))
def test_a_flush_tells_what_each_observation_alone_would_have(seen) -> None:
    waiting, told = CollectorRegistry(), CollectorRegistry()
    ours = TargetHistogram("seen", "what was seen", BOUNDS, waiting)
    theirs = Histogram("seen", "what was seen", ("target",), buckets=BOUNDS, registry=told)
    for target, value, is_counted in seen:
        theirs.labels(target).observe(value)
        if is_counted:
            counts = [0.0] * (len(BOUNDS) + 1)
            counts[bisect_left(BOUNDS, value)] = 1
            ours.add(target, counts, value)
        else:
            ours.observe(target, value)
    for _ in range(2):
        ours.flush()
        assert samples(waiting) == samples(told)


def samples(registry: CollectorRegistry) -> dict[tuple[str, str, str | None], float]:
    return {
        (sample.name, sample.labels["target"], sample.labels.get("le")): sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if not sample.name.endswith("_created")
    }


def test_nothing_is_in_the_registry_before_a_flush() -> None:
    registry = CollectorRegistry()
    histogram = TargetHistogram("seen", "what was seen", BOUNDS, registry)
    histogram.observe("a", 1.0)
    assert registry.get_sample_value("seen_count", {"target": "a"}) is None
    histogram.flush()
    assert registry.get_sample_value("seen_count", {"target": "a"}) == 1
