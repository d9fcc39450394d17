"""Histograms of how fast answers are written: time per output token, and gaps between arrivals.

A gap is counted where content arrives, so its cost is one search in a short tuple and one addition;
an attempt hands over its counts once, when it is settled, and they reach the registry with `flush`.
"""

from collections.abc import Sequence
from operator import add

from prometheus_client import CollectorRegistry, Histogram

from gateway.fleet.gap_counts import GAP_BUCKETS, PACE_BOUNDS_S


class CountedHistogram(Histogram):
    """A histogram that takes observations which are counted by bucket already."""

    def add(self, counts: Sequence[int], total: float) -> None:
        """Add `counts` of each bucket, the last one unbounded, and the sum of what was seen."""
        self._sum.inc(total)
        for bucket, count in zip(self._buckets, counts, strict=True):
            if count:
                bucket.inc(count)


class PaceMetrics:
    """Labels are of configured targets alone. One per worker."""

    def __init__(self, registry: CollectorRegistry | None) -> None:
        self.tpot = Histogram(
            "breakeven_tpot_seconds",
            "Time per output token after the first one, mean of a streamed attempt",
            ("target",),
            buckets=PACE_BOUNDS_S,
            registry=registry,
        )
        self.gaps = CountedHistogram(
            "breakeven_inter_token_latency_seconds",
            "Time between two arrivals of content of a streamed attempt",
            ("target",),
            buckets=PACE_BOUNDS_S,
            registry=registry,
        )
        self._bound: dict[str, Histogram] = {}
        self._counted: dict[str, tuple[list[int], list[float]]] = {}

    def observe_attempt(
        self, target: str, tpot_s: float | None, gaps: Sequence[int] | None, decode_s: float
    ) -> None:
        """Count a streamed attempt; its gaps add up to `decode_s`."""
        if tpot_s is not None:
            bound = self._bound.get(target)
            if bound is None:
                bound = self._bound[target] = self.tpot.labels(target)
            bound.observe(tpot_s)
        if gaps is not None and decode_s > 0.0:
            counts, total = self._counted.setdefault(target, ([0] * GAP_BUCKETS, [0.0]))
            counts[:] = map(add, counts, gaps)
            total[0] += decode_s

    def flush(self) -> None:
        """Everything counted so far is in the registry."""
        counted, self._counted = self._counted, {}
        for target, (counts, total) in counted.items():
            self.gaps.labels(target).add(counts, total[0])
