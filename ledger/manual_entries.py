"""Entries of people, in the browser or at a terminal: an append-only list, in force by subject.

A subject is `KIND:NAME`. An entry counts from its instant on: of those that have begun the one that
begins last counts, of one instant the last that was entered. An entry that says nothing takes all
before it back, what is to come, too. What an entry says is checked by whoever knows its kind.
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
    """`says` as JSON has it. `from_us`: it counts from then on; wall clock, as `recorded_us`."""

    number: int
    subject: str
    says: dict[str, Any] | None
    from_us: int
    recorded_us: int
    actor: str
    note: str | None = None

    @property
    def name(self) -> str:
        """Without its kind."""
        return self.subject.partition(":")[2]


def enter(connection: Connection, given: ManualEntry) -> ManualEntry:
    """Append it under the next number, whatever `given` has.

    Who enters once more what they entered last (its answer was lost on the way) finds that entry:
    it is no second one.
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
    """Every one of a kind, the newest first."""
    return _of(connection, orm.ManualEntryRow.subject.startswith(kind, autoescape=True))


def entries_in_force(found: Sequence[ManualEntry], at_us: int) -> dict[str, ManualEntry]:
    """By name, what counts at an instant, also what takes back. `found`: the newest first."""
    counting: dict[str, ManualEntry] = {}
    taken_back: set[str] = set()
    for entry in found:
        if entry.from_us > at_us or entry.name in taken_back:
            continue
        after = counting.get(entry.name)
        # What counted at once gives way to what was entered after it, whatever clocks said.
        if after is None or after.from_us < entry.from_us != entry.recorded_us:
            counting[entry.name] = entry
        if entry.says is None:
            taken_back.add(entry.name)
    return counting


def latest_us(found: Sequence[ManualEntry], at_us: int) -> int:
    """`at_us`, or when the newest was entered: a reader's rounded clock may be behind it."""
    return max([at_us, *(entry.recorded_us for entry in found)])


def standing_entries(connection: Connection, kind: str, at_us: int) -> dict[str, ManualEntry]:
    """By name, what counts of a kind, also by a clock that is behind whose clock entered it."""
    found = entries(connection, kind)
    return entries_in_force(found, latest_us(found, at_us))


def upcoming_entries(found: Sequence[ManualEntry], at_us: int) -> list[ManualEntry]:
    """Those that begin later and that no later entry makes void, the first to begin first."""
    waiting: dict[tuple[str, int], ManualEntry] = {}
    taken_back: set[str] = set()
    for entry in found:
        if entry.from_us > at_us and entry.name not in taken_back:
            waiting.setdefault((entry.name, entry.from_us), entry)
        if entry.says is None:
            taken_back.add(entry.name)
    return sorted(waiting.values(), key=lambda entry: (entry.from_us, entry.number))


def project_teams(connection: Connection, provider: str, at_us: int) -> dict[str, str]:
    """Return the team of each project on a provider's bills, by the project's name."""
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
    """The newest first."""
    columns = [getattr(orm.ManualEntryRow, name) for name in ManualEntry.__struct_fields__]
    query = select(*columns).where(where).order_by(orm.ManualEntryRow.number.desc()).limit(most)
    return [ManualEntry(*row) for row in connection.execute(query)]


def _is_repeated(last: ManualEntry, given: ManualEntry) -> bool:
    """Whether it says the same, by the same person and from the same instant: a day, or at once."""
    at_once = last.from_us == last.recorded_us and given.from_us == given.recorded_us
    told = [(entry.says, entry.actor, entry.note) for entry in (last, given)]
    return told[0] == told[1] and (at_once or last.from_us == given.from_us)
