"""Intervals between polls of a provider's batch."""

from dataclasses import dataclass

_US = 1_000_000


@dataclass(frozen=True, slots=True)
class PollIntervals:
    """Intervals in seconds.

    After `settled`, a request that was sent before a crash has arrived or never will.
    """

    first: float = 5.0
    most: float = 120.0
    settled: float = 30.0

    def delay_us(self, tries: int) -> int:
        """Return the microseconds before the next poll."""
        return round(min(self.first * 1.5 ** min(tries, 40), self.most) * _US)
