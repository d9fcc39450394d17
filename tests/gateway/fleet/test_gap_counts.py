"""The bounds of gaps: those of the conventions, so that boards can be added up, and finer ones."""

from gateway.fleet.gap_counts import GAP_BUCKETS, PACE_BOUNDS_S
from gateway.telemetry.otel.genai import PER_TOKEN_S


def test_the_bounds_ascend_and_hold_the_conventions() -> None:
    assert list(PACE_BOUNDS_S) == sorted(set(PACE_BOUNDS_S))
    assert set(PACE_BOUNDS_S) > set(PER_TOKEN_S)
    assert len(PACE_BOUNDS_S) + 1 == GAP_BUCKETS
