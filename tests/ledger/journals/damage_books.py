"""Damaged journals brought into the books, many at once: what became of each record, and was told.

Each journal holds attempts of its own, 50 records: opens and settles in turn. `States` says what
its worker does: it closed the journal, was killed, or lives and writes on behind the damage. Beside
the damaged ones lie journals that nothing is wrong with: closed ones, and killed ones whose last
frame was cut short in the middle of a write.
"""

import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from journal_damage import KINDS, DamageCase, count_of
from journal_load import opened, settled
from sqlalchemy import Engine, select

from ledger.journals.frames import Frame
from ledger.journals.homes import JournalSource
from ledger.journals.journal import JournalWriter
from ledger.journals.layout import HEAD_BYTES, encode_head, stamp_of
from ledger.journals.reader import JournalOffset, JournalReader
from ledger.orm.books import AttemptRow
from ledger.verify.checks import verify
from ledger.verify.journals import journals_are_whole, nothing_is_quarantined
from ledger.writing.findings import acknowledge, open_findings
from ledger.writing.repository import LedgerRepository
from ledger.writing.tail import JournalTailer

RECORDS = 50
ATTEMPTS = RECORDS // 2
LEAST_CASES = 10  # of each kind and state
TORN_BYTES = 200  # of the payload of a frame that a kill cuts short
APPLIED = 10  # attempts of a living worker that are in the books before the damage
NO_PRICES = "costs_rederive"  # a check: no price list stands behind these attempts
FIRST = (
    1_000_000  # numbers of attempts have as many digits each, so all journals are laid out alike
)


class State(StrEnum):
    CLOSED = "closed"
    KILLED = "killed"
    ALIVE = "alive"


class DamagePlan(NamedTuple):
    """Cases, by kind and number, on as many journals in one state."""

    state: State
    cases: Sequence[tuple[str, int]]


class _Journal:
    """One journal of `ATTEMPTS` attempts, whose first has the number `first`."""

    def __init__(self, directory: Path, place: int) -> None:
        self.first = FIRST + place * (ATTEMPTS + 1)  # one more is written behind the damage
        self._writer = JournalWriter(directory, f"w{place:06d}")
        self.name = self._writer.name
        (self.path,) = (directory / "v2" / self.name).glob("*.segment")

    def write(self, since: int, until: int) -> None:
        for number in range(self.first + since, self.first + until):
            self._writer.append(opened(number))
            self._writer.append_ending(settled(FIRST, f"r{number}.1"))

    def damage(self, kind: str, number: int) -> DamageCase:
        case = KINDS[kind](self.path.read_bytes(), number)
        self.path.write_bytes(case.data)
        return case

    def close(self) -> None:
        self._writer.close()

    def kill(self) -> None:
        """As the death of its process does: no end frame, no flush, and the locks are free."""
        for file in (self._writer._file, self._writer._holder):
            os.close(file)
        self._writer._mark.close()

    def tear(self, size: int) -> None:
        """A kill in the middle of a write leaves so many bytes of a frame."""
        payload = b"x" * TORN_BYTES
        frame = encode_head(payload, RECORDS + 1, stamp_of(self.name, 1)) + payload
        with self.path.open("ab") as file:
            file.write(frame[:size])


def spans_of(directory: Path) -> list[tuple[int, int]]:
    """Return where each of a journal's frames lies; all journals are laid out alike."""
    journal = _Journal(directory, 0)
    journal.write(0, ATTEMPTS)
    reader = JournalReader(directory)
    (source,) = reader.journals()
    frames: Sequence[Frame] = reader.read(source, JournalOffset()).frames
    journal.close()
    reader.remove(source)
    return [(frame.start, frame.end) for frame in frames]


def segment_bytes(spans: Sequence[tuple[int, int]], state: State) -> int:
    """Return the size of a segment: a closed one has an end frame."""
    end_frame = len(encode_head(b"", 1, 1))
    return spans[-1][1] + (end_frame if state is State.CLOSED else 0)


def plan_damage(
    spans: Sequence[tuple[int, int]], share: float, seed: int, size: int
) -> Iterator[DamagePlan]:
    """Yield plans of at most `size` cases: of every kind and state that share of all cases."""
    dice = random.Random(seed)
    for state in State:
        cases = []
        for kind in KINDS:
            total = count_of(kind, segment_bytes(spans, state))
            part = max(share, LEAST_CASES / total)
            cases += [(kind, number) for number in range(total) if dice.random() < part]
        for since in range(0, len(cases), size):
            yield DamagePlan(state, cases[since : since + size])


def play_damage(
    engine: Engine, directory: Path, plan: DamagePlan, spans: Sequence[tuple[int, int]], *,
    silent: bool = False,
) -> Iterator[str]:  # fmt: skip
    """Play a plan in empty books; yield what is wrong. `silent`: the reader tells nothing."""
    reader = _SilentReader(directory) if silent else JournalReader(directory)
    tail = JournalTailer(LedgerRepository(engine, host="h1"), reader, lambda: 77)
    journals = [_Journal(directory, place) for place in range(len(plan.cases))]
    whole = [_Journal(directory, len(plan.cases) + place) for place in range(3)]
    alive = plan.state is State.ALIVE
    if alive:
        for journal in journals:
            journal.write(0, APPLIED)
        _drain(tail)
    for journal in (*journals, *whole):
        journal.write(APPLIED if alive and journal in journals else 0, ATTEMPTS)
    whole[0].close()
    for place, journal in enumerate(whole[1:]):
        journal.tear(1 + (plan.cases[0][1] + 100 * place) % (HEAD_BYTES + TORN_BYTES - 1))
        journal.kill()
    if plan.state is not State.ALIVE:
        for journal in journals:
            journal.close() if plan.state is State.CLOSED else journal.kill()
    cases = [journal.damage(*case) for journal, case in zip(journals, plan.cases, strict=True)]
    _drain(tail)
    if alive:
        for journal in journals:
            journal.write(ATTEMPTS, ATTEMPTS + 1)
        _drain(tail)
        if tail.stalled():
            yield f"stalled: {tail.stalled()}"
        for journal in journals:
            journal.close()
        _drain(tail)
    if left := [source.name for source in reader.journals()]:
        yield f"{len(left)} journals are not read to their ends"
    yield from _judge(engine, journals, cases, whole, spans, alive=alive)


def _judge(
    engine: Engine, journals: Sequence[_Journal], cases: Sequence[DamageCase],
    whole: Sequence[_Journal], spans: Sequence[tuple[int, int]], *, alive: bool,
) -> Iterator[str]:  # fmt: skip
    with engine.connect() as connection:
        query = select(AttemptRow.attempt_id, AttemptRow.flag, AttemptRow.settled_us)
        rows = {row.attempt_id: row.flag is None and row.settled_us is not None
                for row in connection.execute(query)}  # fmt: skip
        red = {place.partition(":")[0] for check in (journals_are_whole, nothing_is_quarantined)
               for place, _ in check(connection)}  # fmt: skip
        is_red = any("journals" in each.check or "quarantine" in each.check
                     for each in verify(connection).findings)  # fmt: skip
    if is_red is not bool(red):
        yield f"verify is {'red' if is_red else 'green'}, its checks name {len(red)} journals"
    for journal, case in zip(journals, cases, strict=True):
        touched = [any(_touches(stretch, *span) for stretch in case.touched) for span in spans] + [
            False,
            False,
        ]
        lost = []
        for place in range(ATTEMPTS + alive):
            name = f"r{journal.first + place}.1"
            if rows.get(name):
                continue
            lost.append(name)
            applied_before = alive and place < APPLIED
            if applied_before or not any(touched[2 * place : 2 * place + 2]):
                yield f"{case.name}: {name} is intact and has no settled row"
        if lost and journal.name not in red:
            yield f"{case.name}: {len(lost)} attempts lack and verify is green"
    wanted = {f"r{each.first + place}.1" for each in whole for place in range(ATTEMPTS)}
    if lacking := [name for name in wanted if not rows.get(name)]:
        yield f"{len(lacking)} attempts of whole journals lack"
    yield from (f"{each.name} is whole and red" for each in whole if each.name in red)
    known = {f"r{each.first + place}.1" for each in (*journals, *whole)
             for place in range(ATTEMPTS + 1)}  # fmt: skip
    yield from (f"{name}: nobody wrote it" for name in rows if name not in known)
    with engine.begin() as connection:
        seen = {each.place for each in open_findings(connection)}
        acknowledge(connection, seen, by="ann", note=None, at_us=99)
        told = [f"{each.check}: {each.message}" for each in verify(connection).findings
                if each.check != NO_PRICES]  # fmt: skip
    if told:
        yield f"red behind the acknowledgement: {told[0]} ({len(told)})"


def _touches(stretch: tuple[int, int], start: int, end: int) -> bool:
    since, until = stretch
    return start < since < end if since == until else since < end and start < until


def _drain(tail: JournalTailer) -> None:
    for _ in range(10_000):
        step = tail.step()
        if not step.moved and not step.buried:
            return
    raise AssertionError("the journals never end")


class _SilentReader(JournalReader):
    """The control: it skips what is damaged, and says nothing."""

    def read(self, journal: JournalSource, since: JournalOffset, **limits):
        return replace(super().read(journal, since, **limits), damages=())

    def lost_tail(self, journal: JournalSource, since: JournalOffset) -> None:
        return None
