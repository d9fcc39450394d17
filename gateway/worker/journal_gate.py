"""Gate that rejects requests while the journal takes no new work, and logs each change.

While it is closed, every request gets 503. Each change is logged once: by the worker here, and by
`journalwatch` in the output of `serve`.
"""

import asyncio
import logging
from pathlib import Path

from prometheus_client import Counter, Gauge

from ledger.journals.journal import JournalWay, JournalWriter
from ledger.writing.lag import read_lag

JOURNAL = "journal"
_FALL_BACKS: dict[JournalWay, str] = {  # logged if another way was configured
    "thread": "ledger.journal_writes: %s is refused, so a thread writes: %s",
    "calls": "ledger.journal_writes: %s is refused, so the loop itself writes: %s",
}

log = logging.getLogger("breakeven.recording")


class JournalGate:
    """State of one worker's journal. `run_dir` holds the lag that the ledger writer publishes."""

    def __init__(self, journal: JournalWriter, run_dir: Path) -> None:
        self._journal, self._run_dir = journal, run_dir
        self._refused = False
        self._owed = (0, 0)

    def attach(self, way: JournalWay, workers: Gauge) -> None:
        """Choose how records are written: in the requested way, or in one that the system allows.

        `workers` counts workers by their actual way; a fallback is logged.
        """
        journal = self._journal
        journal.attach(asyncio.get_running_loop(), way)
        workers.labels(journal.way).set(1)
        if journal.way_refused is not None:
            log.info(_FALL_BACKS[journal.way], way, journal.way_refused)

    def is_open(self) -> bool:
        """Return whether the journal takes new work; log a change."""
        reason = self._journal.refusal()
        refused = reason is not None
        if refused and not self._refused:
            log.error("the journal rejects new records, every request gets 503 reason=%s", reason)
        elif self._refused and not refused:
            log.warning("the journal accepts new records again")
        self._refused = refused
        return not refused

    def show_owed(self, waiting: Gauge, lost: Counter) -> None:
        """Update the metrics of settle records that wait for disk space or were lost."""
        owed = self._journal.owed
        if (shown := (len(owed.waiting), owed.lost)) == self._owed:
            return
        waiting.set(shown[0])
        if given_up := shown[1] - self._owed[1]:
            lost.inc(given_up)
            log.error("ends of attempts are lost: the journal had no space attempts=%d", given_up)
        self._owed = shown

    def stalled(self) -> str | None:
        """Return why the ledger writer cannot read on in a journal of this host; None: it can."""
        lag = read_lag(self._run_dir)
        return None if lag is None else lag.stalled
