"""The time by which rows are deleted: it cannot jump ahead as a machine's clock can."""

import time
from collections.abc import Callable


class ElapsedTime:
    """Wall time, in microseconds, that is never ahead of what has passed since it was made.

    A clock that is set months ahead and back again would else delete what is still needed. Only
    what it says at first is believed.
    """

    def __init__(
        self, now_us: Callable[[], int], elapsed_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._now_us, self._elapsed_ns = now_us, elapsed_ns
        self._first_us, self._first_ns = now_us(), elapsed_ns()

    def at_most_us(self) -> int:
        """Return the time now, or an earlier one where the wall clock ran ahead."""
        passed_us = (self._elapsed_ns() - self._first_ns) // 1000
        return min(self._now_us(), self._first_us + passed_us)
