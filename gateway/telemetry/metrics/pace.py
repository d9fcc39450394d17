"""Histograms of answer speed: time per output token, and gaps between chunks.

A gap is counted as content arrives, which costs one search in a short tuple and one addition. An
attempt adds its counts once, when it is settled.
"""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry

from gateway.fleet.gap_counts import PACE_BOUNDS_S
from gateway.telemetry.metrics.target_histogram import TargetHistogram


class PaceMetrics:
    """Speed histograms of one worker; labels are configured targets only."""

    def __init__(self, registry: CollectorRegistry | None) -> None:
        self._tpot = TargetHistogram(
            "breakeven_tpot_seconds",
            "Time per output token after the first one, mean of a streamed attempt",
            PACE_BOUNDS_S,
            registry,
        )
        self._gaps = TargetHistogram(
            "breakeven_inter_token_latency_seconds",
            "Time between two arrivals of content of a streamed attempt",
            PACE_BOUNDS_S,
            registry,
        )

    def observe_attempt(
        self, target: str, tpot_s: float | None, gaps: Sequence[int] | None, decode_s: float
    ) -> None:
        """Add a streamed attempt; its gaps add up to `decode_s`."""
        if tpot_s is not None:
            self._tpot.observe(target, tpot_s)
        if gaps is not None and decode_s > 0.0:
            self._gaps.add(target, gaps, decode_s)

    def flush(self) -> None:
        """Move all counts into the registry."""
        self._tpot.flush()
        self._gaps.flush()
