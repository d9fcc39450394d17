"""Journals that cannot be read on, and since when: what makes a host unready. No I/O."""

from collections.abc import Callable, Collection

STANDSTILL_S = 2.0  # a frame is written in microseconds; unready is told within 5 s


class StallWatch:
    """For one thread that reads journals; `reason` may be asked from another."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._since: dict[str, tuple[float, str]] = {}  # by journal: from when it counts, and why

    def record_failure(self, journal: str, why: str) -> None:
        """The journal cannot be read at all; counts at once."""
        self._since[journal] = (self._now_s(), why)

    def record_standstill(self, journal: str, why: str) -> None:
        """The journal has bytes that cannot be read; counts after `STANDSTILL_S`."""
        known = self._since.get(journal)
        if known is None or known[1] != why:
            self._since[journal] = (self._now_s() + STANDSTILL_S, why)

    def record_progress(self, journal: str) -> None:
        self._since.pop(journal, None)

    def keep(self, journals: Collection[str]) -> None:
        """Forget all other journals: they are not there any more."""
        for journal in self._since.keys() - set(journals):
            del self._since[journal]

    def reason(self) -> str | None:
        now_s = self._now_s()
        for journal, (since_s, why) in list(self._since.items()):
            if since_s <= now_s:
                return f"journal {journal} cannot be read on: {why}"
        return None
