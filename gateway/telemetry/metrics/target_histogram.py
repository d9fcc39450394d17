"""Histogram by target, with observations kept in memory until the next flush.

The registry's cells are in a file mapped by several processes: one observation there costs as much
as fifty here, and every attempt has two or three.
"""

from bisect import bisect_left
from collections.abc import Sequence
from operator import add

from prometheus_client import CollectorRegistry, Histogram


class CountedHistogram(Histogram):
    """A histogram that accepts observations already counted by bucket."""

    def add(self, counts: Sequence[float], total: float) -> None:
        """Add `counts` of each bucket, the last one unbounded, and the sum of the observations."""
        self._sum.inc(total)
        for bucket, count in zip(self._buckets, counts, strict=True):
            if count:
                bucket.inc(count)


class TargetHistogram:
    """Histogram with a label of configured targets only."""

    def __init__(
        self, name: str, words: str, bounds: Sequence[float], registry: CollectorRegistry | None
    ) -> None:
        """Create the histogram; `bounds` are ascending and omit the unbounded last bucket."""
        self._bounds = bounds
        self._registered = CountedHistogram(
            name, words, ("target",), buckets=bounds, registry=registry
        )
        self._waiting: dict[str, list[float]] = {}  # counts of the buckets, then the sum

    def observe(self, target: str, seen: float) -> None:
        sums = self._sums_of(target)
        sums[bisect_left(self._bounds, seen)] += 1
        sums[-1] += seen

    def add(self, target: str, counts: Sequence[float], total: float) -> None:
        """Add observations already counted by bucket, and their sum."""
        sums = self._sums_of(target)
        sums[:] = map(add, sums, (*counts, total))

    def flush(self) -> None:
        """Move all observations into the registry."""
        waiting, self._waiting = self._waiting, {}
        for target, (*counts, total) in waiting.items():
            self._registered.labels(target).add(counts, total)

    def _sums_of(self, target: str) -> list[float]:
        sums = self._waiting.get(target)
        if sums is None:
            sums = self._waiting[target] = [0.0] * (len(self._bounds) + 2)
        return sums
