"""The time between two looks at a provider's batch."""

from dataclasses import dataclass

_US = 1_000_000


@dataclass(frozen=True, slots=True)
class PollIntervals:
    """Seconds. `settled`: after that, what was sent before a crash has arrived, or never will."""

    first: float = 5.0
    most: float = 120.0
    settled: float = 30.0

    def delay_us(self, tries: int) -> int:
        """Microseconds before the next look."""
        return round(min(self.first * 1.5 ** min(tries, 40), self.most) * _US)
