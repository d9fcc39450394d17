"""Manual entries, made in the browser or at a terminal: an append-only list by subject.

A subject is `KIND:NAME`. An entry is effective from its start time. Of the entries that have
started, the one with the latest start is active; of equal starts, the one that was entered last. An
entry without a value withdraws all earlier entries of its subject, future ones too. The code that
owns a kind validates the values.
"""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, insert, select

from ledger.orm import policies as orm

RATE, PROJECT, SCENARIO, CURRENCY = "rate:", "project:", "scenario:", "currency:"
RESERVED, GPU_PRICE, BUDGET, MUTE = "reserved:", "gpu-price:", "budget:", "mute:"
VIRTUAL_TAG, METRIC, OPS_SOURCE = "virtual-tag:", "metric:", "ops-source:"


class ManualEntry(msgspec.Struct, frozen=True):
    """One entry. `says` is its JSON value; it is effective from `from_us` (wall clock)."""

    number: int
    subject: str
    says: dict[str, Any] | None
    from_us: int
    recorded_us: int
    actor: str
    note: str | None = None

    @property
    def name(self) -> str:
        """Return the subject without its kind."""
        return self.subject.partition(":")[2]


def enter(connection: Connection, given: ManualEntry) -> ManualEntry:
    """Append the entry under the next number and return it; the given number is ignored.

    A repetition of the latest entry by the same person (after a lost response) returns the existing
    entry and adds none.
    """
    last = next(iter(_of(connection, orm.ManualEntryRow.subject == given.subject, most=1)), None)
    if last is not None and _is_repeated(last, given):
        return last
    values = msgspec.structs.asdict(given)
    del values["number"]
    done = connection.execute(
        insert(orm.ManualEntryRow).values(values).returning(orm.ManualEntryRow.number)
    )
    return msgspec.structs.replace(given, number=done.scalar_one())


def entries(connection: Connection, kind: str) -> Sequence[ManualEntry]:
    """Return all entries of a kind, newest first."""
    return _of(connection, orm.ManualEntryRow.subject.startswith(kind, autoescape=True))


def entries_in_force(found: Sequence[ManualEntry], at_us: int) -> dict[str, ManualEntry]:
    """Return the active entry of each name, including withdrawals. `found`: newest first."""
    counting: dict[str, ManualEntry] = {}
    taken_back: set[str] = set()
    for entry in found:
        if entry.from_us > at_us or entry.name in taken_back:
            continue
        after = counting.get(entry.name)
        # An entry without a start date yields to any later entry, even if host clocks differ.
        if after is None or after.from_us < entry.from_us != entry.recorded_us:
            counting[entry.name] = entry
        if entry.says is None:
            taken_back.add(entry.name)
    return counting


def latest_us(found: Sequence[ManualEntry], at_us: int) -> int:
    """Return `at_us` or the latest entry's time if later: a reader's clock may be behind."""
    return max([at_us, *(entry.recorded_us for entry in found)])


def standing_entries(connection: Connection, kind: str, at_us: int) -> dict[str, ManualEntry]:
    """Return the active entries of a kind by name, also for a reader whose clock is behind."""
    found = entries(connection, kind)
    return entries_in_force(found, latest_us(found, at_us))


def upcoming_entries(found: Sequence[ManualEntry], at_us: int) -> list[ManualEntry]:
    """Return the entries that start later, earliest first, without withdrawn or replaced ones."""
    waiting: dict[tuple[str, int], ManualEntry] = {}
    taken_back: set[str] = set()
    for entry in found:
        if entry.from_us > at_us and entry.name not in taken_back:
            waiting.setdefault((entry.name, entry.from_us), entry)
        if entry.says is None:
            taken_back.add(entry.name)
    return sorted(waiting.values(), key=lambda entry: (entry.from_us, entry.number))


def project_teams(connection: Connection, provider: str, at_us: int) -> dict[str, str]:
    """Return the team of each project on a provider's bills, by project name."""
    found = standing_entries(connection, f"{PROJECT}{provider}/", at_us)
    mine = f"{provider}/"
    return {
        name.removeprefix(mine): entry.says["team"]
        for name, entry in found.items()
        if entry.says is not None
    }


def _of(
    connection: Connection, where: ColumnElement[bool], most: int | None = None
) -> Sequence[ManualEntry]:
    """Return the matching entries, newest first."""
    columns = [getattr(orm.ManualEntryRow, name) for name in ManualEntry.__struct_fields__]
    query = select(*columns).where(where).order_by(orm.ManualEntryRow.number.desc()).limit(most)
    return [ManualEntry(*row) for row in connection.execute(query)]


def _is_repeated(last: ManualEntry, given: ManualEntry) -> bool:
    """Return whether both entries agree in value, author, note and start (a day, or at once)."""
    at_once = last.from_us == last.recorded_us and given.from_us == given.recorded_us
    told = [(entry.says, entry.actor, entry.note) for entry in (last, given)]
    return told[0] == told[1] and (at_once or last.from_us == given.from_us)
