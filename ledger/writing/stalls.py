"""Journals that cannot be read further, and since when: these make a host unready. No I/O."""

from collections.abc import Callable, Collection

STANDSTILL_S = 2.0  # a frame is written in microseconds; unready is reported within 5 s


class StallWatch:
    """Stalled journals, recorded by one reading thread; another thread may read `reason`."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._since: dict[str, tuple[float, str]] = {}  # by journal: from when it counts, and why

    def record_failure(self, journal: str, why: str) -> None:
        """Record that the journal cannot be read at all, which counts at once."""
        self._since[journal] = (self._now_s(), why)

    def record_standstill(self, journal: str, why: str) -> None:
        """Record bytes of the journal that cannot be read, which count after `STANDSTILL_S`."""
        known = self._since.get(journal)
        if known is None or known[1] != why:
            self._since[journal] = (self._now_s() + STANDSTILL_S, why)

    def record_progress(self, journal: str) -> None:
        self._since.pop(journal, None)

    def keep(self, journals: Collection[str]) -> None:
        """Forget all journals but these: the others do not exist any more."""
        for journal in self._since.keys() - set(journals):
            del self._since[journal]

    def reason(self) -> str | None:
        now_s = self._now_s()
        for journal, (since_s, why) in list(self._since.items()):
            if since_s <= now_s:
                return f"journal {journal} cannot be read on: {why}"
        return None
