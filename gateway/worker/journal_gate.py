"""Whether requests can be recorded: a journal that takes no new work is told, not only obeyed.

Every request is refused then. A worker says so in its log, and `journalwatch` in what `serve`
prints: once per change, for requests come by the thousand.
"""

import logging
from pathlib import Path

from ledger.journals.journal import JournalWriter
from ledger.writing.lag import read_lag

JOURNAL = "journal"

log = logging.getLogger("breakeven.recording")


class JournalGate:
    """One worker's journal, watched. `run_dir` has what the host's ledger writer says of all."""

    def __init__(self, journal: JournalWriter, run_dir: Path) -> None:
        self._journal, self._run_dir = journal, run_dir
        self._refused = False

    def is_open(self) -> bool:
        """Whether new work is taken; a change is logged."""
        reason = self._journal.refusal()
        refused = reason is not None
        if refused and not self._refused:
            log.error("every request gets 503: the journal takes no new work: %s", reason)
        elif self._refused and not refused:
            log.warning("the journal takes new work again")
        self._refused = refused
        return not refused

    def stalled(self) -> str | None:
        """Return why the ledger writer cannot read a journal of this host on; None: it can."""
        lag = read_lag(self._run_dir)
        return None if lag is None else lag.stalled
