"""A clock for deleting expired rows, which cannot jump ahead as a machine's clock can."""

import time
from collections.abc import Callable


class ElapsedTime:
    """Wall time in microseconds that never advances faster than the monotonic clock.

    A wall clock that is set months ahead by mistake would otherwise delete rows that are still
    needed. The wall time at construction is trusted.
    """

    def __init__(
        self, now_us: Callable[[], int], elapsed_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._now_us, self._elapsed_ns = now_us, elapsed_ns
        self._first_us, self._first_ns = now_us(), elapsed_ns()

    def at_most_us(self) -> int:
        """Return the current time, or an earlier time if the wall clock was set ahead."""
        passed_us = (self._elapsed_ns() - self._first_ns) // 1000
        return min(self._now_us(), self._first_us + passed_us)
