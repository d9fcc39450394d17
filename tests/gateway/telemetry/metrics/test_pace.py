"""Time per output token and gaps between arrivals, in the registry after a flush and only once."""

from bisect import bisect_left

from prometheus_client import CollectorRegistry

from gateway.fleet.gap_counts import GAP_BUCKETS, PACE_BOUNDS_S
from gateway.telemetry.metrics.pace import PaceMetrics

GAPS = "breakeven_inter_token_latency_seconds"
TPOT = "breakeven_tpot_seconds"


def counted(*gaps_s: float) -> list[int]:
    counts = [0] * GAP_BUCKETS
    for gap_s in gaps_s:
        counts[bisect_left(PACE_BOUNDS_S, gap_s)] += 1
    return counts


def test_counts_of_attempts_are_what_each_gap_alone_would_be() -> None:
    registry = CollectorRegistry()
    pace = PaceMetrics(registry)
    pace.observe_attempt("alpha/m", 0.03, counted(0.01, 0.02, 7.0), 7.03)
    pace.observe_attempt("alpha/m", None, counted(0.02), 0.02)
    for _ in range(2):
        pace.flush()
        labels = {"target": "alpha/m"}
        assert registry.get_sample_value(f"{GAPS}_count", labels) == 4
        assert registry.get_sample_value(f"{GAPS}_sum", labels) == 7.05
        below = {le: registry.get_sample_value(f"{GAPS}_bucket", {**labels, "le": le}) for le in
                 ("0.005", "0.01", "0.025", "2.5", "+Inf")}  # fmt: skip
        assert below == {"0.005": 0, "0.01": 1, "0.025": 3, "2.5": 3, "+Inf": 4}
        assert registry.get_sample_value(f"{TPOT}_count", labels) == 1
        assert registry.get_sample_value(f"{TPOT}_sum", labels) == 0.03


def test_an_answer_in_one_arrival_has_no_gap_and_no_pace() -> None:
    registry = CollectorRegistry()
    pace = PaceMetrics(registry)
    pace.observe_attempt("alpha/m", None, counted(), 0.0)
    pace.observe_attempt("alpha/m", None, None, 0.0)
    pace.flush()
    assert registry.get_sample_value(f"{GAPS}_count", {"target": "alpha/m"}) is None
    assert registry.get_sample_value(f"{TPOT}_count", {"target": "alpha/m"}) is None
