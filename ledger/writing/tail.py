"""One pass over all journals of a host: read, apply with the new positions, clean up behind.

The blocking half of the ledger writer. A journal whose owner is gone and whose end is applied is
finished: its open attempts are settled as lost, then its files go, then its position. Whichever of
these steps a crash interrupts, the next pass repeats it without effect.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from ledger.journals.reader import JournalOffset, JournalReader, JournalSource, has_owner
from ledger.writing.fold import JournalItem
from ledger.writing.repository import (
    ApplyResult,
    DatabaseUnavailable,
    JournalMove,
    LedgerRepository,
)

STEP_BYTES = 1024 * 1024  # per transaction, of all journals: others wait for SQLite's lock as long
LEAST_BYTES = 64 * 1024  # of each journal
# After a failure a transaction takes half as many records, and twice as many after a success: where
# any one may fail for a moment (a deadlock, a connection cut), a large one would fail for ever.
FEWEST_RECORDS = 4
ALL_RECORDS = 8192  # from here on only bytes count


@dataclass(slots=True)
class TailResult:
    """What one pass did. `buried` are journals that ended and are wholly in the books.

    `more`: it moved, and stopped where a journal certainly goes on.
    """

    applied: ApplyResult
    moved: bool = False
    more: bool = False
    buried: list[str] = field(default_factory=list)


class JournalTailer:
    """The blocking half: one pass over all journals. Runs in a thread, one at a time."""

    def __init__(
        self, repository: LedgerRepository, reader: JournalReader, now_us: Callable[[], int]
    ) -> None:
        self._repository, self._reader, self._now_us = repository, reader, now_us
        self._positions: dict[str, JournalOffset] | None = None
        self._records = ALL_RECORDS  # a transaction takes at most so many

    def step(self) -> TailResult:
        """Apply what lies ahead of the positions. Raises `DatabaseUnavailable`."""
        try:
            return self._step()
        except DatabaseUnavailable:
            self._positions = None
            raise

    def backlog_bytes(self) -> int:
        positions = self._positions or {}
        return sum(
            self._reader.backlog_bytes(journal, positions.get(journal.name, JournalOffset()))
            for journal in self._reader.journals()
        )

    def journals(self) -> list[str]:
        return [journal.name for journal in self._reader.journals()]

    def _step(self) -> TailResult:
        if self._positions is None:
            self._positions = self._repository.positions()
            self._forget_removed(self._positions)
        positions = self._positions
        items: list[JournalItem] = []
        moves: list[JournalMove] = []
        ended: list[JournalSource] = []
        step = TailResult(ApplyResult())
        journals = list(self._reader.journals())
        share = max(LEAST_BYTES, STEP_BYTES // max(1, len(journals)))
        for journal in journals:
            if len(items) >= self._records:
                step.more = True
                break
            since = positions.get(journal.name, JournalOffset())
            owned = has_owner(journal)
            most = self._records - len(items) if self._records < ALL_RECORDS else None
            chunk = self._reader.read(journal, since, limit_bytes=share, most=most)
            if chunk.after == since:
                if not owned:
                    ended.append(journal)
                continue
            step.more |= chunk.more
            moves.append(JournalMove(journal.name, journal.worker, since, chunk.after))
            name, segment = journal.name, chunk.after.segment
            items += [
                JournalItem(name, segment, frame.start, frame.raw, frame.record, frame.fault)
                for frame in chunk.frames
            ]
        if moves:
            step.moved = True
            step.applied = self._apply_items(items, moves)
            positions.update({move.journal: move.after for move in moves})
            self._remove_applied(moves)
        for journal in ended:
            self._bury(journal, step)
        return step

    def _apply_items(self, items: list[JournalItem], moves: list[JournalMove]) -> ApplyResult:
        try:
            applied = self._repository.apply(items, moves, at_us=self._now_us())
        except DatabaseUnavailable:
            self._records = max(FEWEST_RECORDS, min(self._records, len(items)) // 2)
            raise
        self._records = min(ALL_RECORDS, 2 * self._records)
        return applied

    def _bury(self, journal: JournalSource, step: TailResult) -> None:
        """Its lock was free before its end was read: nothing will follow."""
        lost = self._repository.settle_lost(journal.name, at_us=self._now_us())
        for account, pusd in lost.spent.items():
            step.applied.spent[account] = step.applied.spent.get(account, 0) + pusd
        step.applied.settled += lost.settled
        self._reader.remove(journal)
        self._repository.forget_journal(journal.name)
        if self._positions is not None:
            self._positions.pop(journal.name, None)
        step.buried.append(journal.name)

    def _remove_applied(self, moves: list[JournalMove]) -> None:
        after = {move.journal: move.after for move in moves}
        for journal in self._reader.journals():
            if journal.name in after:
                self._reader.remove_applied(journal, after[journal.name])

    def _forget_removed(self, positions: dict[str, JournalOffset]) -> None:
        """Journals that were removed just before the process died."""
        there = set(self.journals())
        for name in [name for name in positions if name not in there]:
            self._repository.forget_journal(name)
            del positions[name]
