"""One pass over all journals of a host: read, apply with new positions, delete if done.

This is the blocking half of the ledger writer. A journal whose owner died and whose end is applied
is finished: its open attempts are settled as lost, then its files are deleted, then its position.
If a crash interrupts these steps, the next pass repeats them without effect. Damage and gaps are
stored with the batch in which they were found, and logged; reading continues behind them.
"""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace

from ledger.journals.findings import UNKNOWN_BOUND, JournalFinding, LackingBound, finding_of
from ledger.journals.homes import JournalSource, has_owner
from ledger.journals.reader import JournalChunk, JournalOffset, JournalReader
from ledger.journals.scan import Damage
from ledger.writing.fold import JournalItem
from ledger.writing.repository import (
    ENDED,
    ApplyResult,
    DatabaseUnavailable,
    JournalMove,
    LedgerRepository,
)
from ledger.writing.stalls import StallWatch

STEP_BYTES = 1024 * 1024  # per transaction, of all journals: others wait for SQLite's lock as long
LEAST_BYTES = 64 * 1024  # of each journal
# A failure halves the records of a transaction and a success doubles them: if each record may
# fail transiently (deadlock, lost connection), a large transaction would fail for ever.
FEWEST_RECORDS = 4
ALL_RECORDS = 8192  # from here on only bytes count
NEWER = (
    "a newer version wrote it: start that version again, or stop and run its `breakeven ledger "
    "drain` before this one"
)
EVERY_JOURNAL = "*"  # in place of a name: the directory itself

log = logging.getLogger("breakeven.journals")


@dataclass(slots=True)
class TailResult:
    """Result of one pass. `buried` lists ended journals whose records are all in the database.

    `more`: the pass made progress and stopped where a journal continues.
    """

    applied: ApplyResult
    moved: bool = False
    more: bool = False
    buried: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Batch:
    """The records of one pass.

    `ended` are journals that have no owner and are read to the end.
    """

    items: list[JournalItem] = field(default_factory=list)
    moves: list[JournalMove] = field(default_factory=list)
    ended: list[JournalSource] = field(default_factory=list)


class JournalTailer:
    """The blocking reader and applier of all journals.

    It runs in a thread, one pass at a time. `at_stake` bounds the cost of missing rows of a
    journal.
    """

    def __init__(
        self,
        repository: LedgerRepository,
        reader: JournalReader,
        now_us: Callable[[], int],
        at_stake: Callable[[str], LackingBound] = lambda _: UNKNOWN_BOUND,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._repository, self._reader, self._now_us = repository, reader, now_us
        self._at_stake = at_stake
        self._positions: dict[str, JournalOffset] | None = None
        self._records = ALL_RECORDS  # a transaction takes at most so many
        self._stalls = StallWatch(now_s)
        self._told: dict[tuple[str, int, int], int] = {}  # place of a finding: last number it has
        self._backlog_bytes = 0

    def step(self) -> TailResult:
        """Apply the records after the positions. Raises `DatabaseUnavailable`."""
        try:
            step = self._step()
        except DatabaseUnavailable:
            self._positions = None
            raise
        except OSError as error:
            self._stalls.record_failure(EVERY_JOURNAL, f"{error.strerror}: {error.filename}")
            return TailResult(ApplyResult())
        self._stalls.record_progress(EVERY_JOURNAL)
        return step

    def stalled(self) -> str | None:
        """Return why a journal cannot be read further, `None` if all can."""
        return self._stalls.reason()

    def backlog_bytes(self) -> int:
        """Return the bytes not applied yet, or the last known number if the disk cannot be read."""
        positions = dict(self._positions or {})
        with suppress(OSError):
            self._backlog_bytes = sum(
                self._reader.backlog_bytes(journal, positions.get(journal.name, JournalOffset()))
                for journal in self._reader.journals()
            )
        return self._backlog_bytes

    def journals(self) -> list[str]:
        return [journal.name for journal in self._reader.journals()]

    def _step(self) -> TailResult:
        journals = self._reader.journals()
        if self._positions is None:
            self._positions = self._repository.positions()
        names = {journal.name for journal in journals}
        self._stalls.keep({EVERY_JOURNAL, *names})
        self._forget_removed(self._positions, names)
        step = TailResult(ApplyResult())
        batch = self._read(journals, self._positions, step)
        if batch.moves:
            step.moved = any(move.after != move.since for move in batch.moves)
            step.applied = self._apply_items(batch.items, batch.moves)
            self._positions.update({move.journal: move.after for move in batch.moves})
            self._note(batch.moves)
            self._remove_applied(batch.moves)
        for journal in batch.ended:
            try:
                self._bury(journal, step)
            except OSError as error:  # others end all the same
                self._stalls.record_failure(journal.name, f"{error.strerror}: {error.filename}")
        return step

    def _read(
        self, journals: list[JournalSource], positions: dict[str, JournalOffset], step: TailResult
    ) -> _Batch:
        batch = _Batch()
        share = max(LEAST_BYTES, STEP_BYTES // max(1, len(journals)))
        for journal in journals:
            if len(batch.items) >= self._records:
                step.more = True
                break
            since = positions.get(journal.name, JournalOffset())
            if since.sequence == ENDED:
                batch.ended.append(journal)
                continue
            most = self._records - len(batch.items) if self._records < ALL_RECORDS else None
            try:
                owned = has_owner(journal)
                chunk = self._reader.read(journal, since, limit_bytes=share, most=most)
            except OSError as error:
                self._stalls.record_failure(journal.name, f"{error.strerror}: {error.filename}")
                continue
            chunk, newer = _known_part(chunk)
            findings = self._new_findings(journal, chunk.damages, chunk.damaged)
            if newer is not None and chunk.after == since and not findings:
                self._stalls.record_failure(journal.name, f"{NEWER} ({newer})")
                continue
            if chunk.after == since and not findings:
                self._watch(journal, since, chunk, owned=owned)
                if not owned:
                    batch.ended.append(journal)
                continue
            self._stalls.record_progress(journal.name)
            step.more |= chunk.more
            batch.moves.append(
                JournalMove(journal.name, journal.worker, since, chunk.after, findings)
            )
            batch.items += _items(journal, chunk, findings)
        return batch

    def _watch(
        self, journal: JournalSource, since: JournalOffset, chunk: JournalChunk, *, owned: bool
    ) -> None:
        """Record a stall if a live worker's journal has unreadable bytes that are not reported."""
        if not owned or chunk.damages or not self._reader.backlog_bytes(journal, since):
            self._stalls.record_progress(journal.name)
            return
        place = f"segment {since.segment}, byte {since.offset}"
        self._stalls.record_standstill(journal.name, f"what lies behind {place} is not a frame")

    def _new_findings(
        self, journal: JournalSource, damages: tuple[Damage, ...], segment: int
    ) -> tuple[JournalFinding, ...]:
        """Return findings with more missing than was reported since the start."""
        fresh = [
            damage
            for damage in damages
            if damage.after + (damage.missing or 0)
            > self._told.get((journal.name, segment, damage.start), -1)
        ]
        if not fresh:
            return ()
        bound = self._at_stake(journal.name)
        return tuple(
            finding_of(damage, journal.name, journal.worker, segment, bound) for damage in fresh
        )

    def _note(self, moves: list[JournalMove]) -> None:
        for move in moves:
            for finding in move.findings:
                place = finding.journal, finding.segment, finding.offset
                self._told[place] = finding.after + (finding.missing or 0)
                log.error(
                    "a journal is damaged journal=%s segment=%d offset=%d error=%s",
                    finding.journal,
                    finding.segment,
                    finding.offset,
                    finding.text,
                )

    def _apply_items(self, items: list[JournalItem], moves: list[JournalMove]) -> ApplyResult:
        try:
            applied = self._repository.apply(items, moves, at_us=self._now_us())
        except DatabaseUnavailable:
            self._records = max(FEWEST_RECORDS, min(self._records, len(items)) // 2)
            raise
        self._records = min(ALL_RECORDS, 2 * self._records)
        return applied

    def _bury(self, journal: JournalSource, step: TailResult) -> None:
        """Delete a journal. Its lock was free before its end was read, so nothing will follow."""
        assert self._positions is not None
        since = self._positions.get(journal.name, JournalOffset())
        if since.sequence != ENDED:
            lost = self._reader.lost_tail(journal, since)
            if lost is not None:
                self._tell_lost_tail(journal, since, lost)
            self._settle_lost(journal.name, step)
            if journal.format != 1:
                ended = JournalMove(journal.name, journal.worker, since, since)
                self._repository.end_journal(ended, at_us=self._now_us())
        self._reader.remove(journal)
        self._repository.forget_journal(journal.name)
        self._positions.pop(journal.name, None)
        self._stalls.record_progress(journal.name)
        step.buried.append(journal.name)

    def _tell_lost_tail(self, journal: JournalSource, since: JournalOffset, lost: Damage) -> None:
        findings = self._new_findings(journal, (lost,), since.segment)
        move = JournalMove(journal.name, journal.worker, since, since, findings)
        rest = [
            JournalItem(journal.name, since.segment, lost.start, lost.raw, None, finding.text)
            for finding in findings
            if lost.raw
        ]
        self._apply_items(rest, [move])
        self._note([move])

    def _settle_lost(self, journal: str, step: TailResult) -> None:
        lost = self._repository.settle_lost(journal, at_us=self._now_us())
        for account, pusd in lost.spent.items():
            step.applied.spent[account] = step.applied.spent.get(account, 0) + pusd
        step.applied.settled += lost.settled

    def _remove_applied(self, moves: list[JournalMove]) -> None:
        after = {move.journal: move.after for move in moves}
        for journal in self._reader.journals():
            if journal.name in after:
                self._reader.remove_applied(journal, after[journal.name])

    def _forget_removed(self, positions: dict[str, JournalOffset], there: set[str]) -> None:
        """Forget journals that were deleted just before the process died.

        A journal of format 2 that was not fully applied was deleted by someone else.
        """
        for name in [name for name in positions if name not in there]:
            since = positions[name]
            if since.sequence > 0:
                self._tell_vanished(name, since)
            self._repository.forget_journal(name)
            del positions[name]

    def _tell_vanished(self, name: str, since: JournalOffset) -> None:
        worker = name.rpartition("-")[0]
        reason = "its files are gone, and its end was not read"
        gone = JournalFinding(
            name, worker, since.segment, since.offset, since.sequence - 1, None, reason,
            self._at_stake(name),
        )  # fmt: skip
        move = JournalMove(name, worker, since, since, (gone,))
        self._apply_items([], [move])
        self._note([move])
        self._repository.settle_lost(name, at_us=self._now_us())


def _known_part(chunk: JournalChunk) -> tuple[JournalChunk, str | None]:
    """Return the part before the first record of a newer version, and why reading stops there.

    That record is neither applied nor quarantined: a version that knows it continues from there.
    """
    for place, frame in enumerate(chunk.frames):
        if frame.is_newer:
            after = JournalOffset(chunk.after.segment, frame.start, frame.sequence)
            damages = tuple(each for each in chunk.damages if each.start < frame.start)
            known = replace(chunk, frames=chunk.frames[:place], after=after, damages=damages)
            return known, (frame.fault or "").removeprefix("not a record: ")
    return chunk, None


def _items(
    journal: JournalSource, chunk: JournalChunk, findings: tuple[JournalFinding, ...]
) -> list[JournalItem]:
    """Return the records, and the bytes of damaged places, for quarantine."""
    name, segment = journal.name, chunk.after.segment
    items = [
        JournalItem(name, segment, frame.start, frame.raw, frame.record, frame.fault)
        for frame in chunk.frames
    ]
    raw = {damage.start: damage.raw for damage in chunk.damages}
    return items + [
        JournalItem(name, segment, finding.offset, raw[finding.offset], None, finding.text)
        for finding in findings
        if raw.get(finding.offset)
    ]
