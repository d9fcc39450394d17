"""Packed sums of past days: quarters of a day, weeks, and whole days of minutes.

A day is past once an attempt that was opened after it is counted. Its packed sums are then made
once from its hours, and late attempts are added to both. A host of an earlier version does not know
packed sums: after a commit by such a host they are invalid, and are rebuilt after `CALM`
consecutive commits by hosts that maintain them. This keeps two versions from undoing each other's
work.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, delete, func, insert, select, tuple_

from ledger.database import in_groups
from ledger.orm.rollups import (
    RollupHourRow,
    RollupLoadDayRow,
    RollupLoadHourRow,
    RollupLoadRow,
    RollupPackingRow,
)
from ledger.spans import DAY_US, MINUTE_US, total
from ledger.sums.minutes import LoadDay, pack_day, unpack_day
from ledger.sums.rollup import CUBES, WEEK_US, Load, RollupCube, add_load, hour_of, unpack
from ledger.upserts import insert_of

NAME = "attempts"
CALM = 30  # some minutes of a follower's commits
LOADS_AT_ONCE = 200
Late = Mapping[tuple[int, int], Mapping[int, Load]]  # by number and day, by minute of the day


@dataclass(frozen=True, slots=True)
class PackedUntil:
    """Progress of packing: days before `until_us` are packed.

    `calm` is the column of `orm.RollupPackingRow`: consecutive commits that maintained packed sums.
    """

    until_us: int
    calm: int

    def has_packed(self, start_us: int, width_us: int) -> bool:
        """Return whether the packed sum that contains `start_us` exists."""
        return start_us - start_us % width_us + width_us <= self.until_us


def read_packed_until(connection: Connection, version: int) -> PackedUntil:
    """Return the progress of packing at this version of the sums."""
    query = select(RollupPackingRow.version, RollupPackingRow.until_us, RollupPackingRow.calm)
    row = connection.execute(query).one_or_none()
    if row is None:
        return PackedUntil(0, 0 if version else CALM)
    return PackedUntil(row[1], row[2]) if row[0] == version else PackedUntil(0, 0)


def write_packed_until(connection: Connection, version: int, now: PackedUntil) -> None:
    on_conflict = insert_of(connection.dialect)
    values = {"version": version, "until_us": now.until_us, "calm": min(now.calm, CALM)}
    statement = on_conflict(RollupPackingRow).values(name=NAME, **values)
    connection.execute(statement.on_conflict_do_update(index_elements=["name"], set_=values))


def pack_next(connection: Connection, now: PackedUntil) -> PackedUntil | None:
    """Pack one more day, and the week that ends with it; `None` if no further day is past."""
    if now.calm < CALM:
        return None
    ends = select(func.min(RollupHourRow.start_us), func.max(RollupHourRow.start_us))
    first, newest = connection.execute(ends).one()
    if newest is None:
        return None
    day_us = now.until_us or first - first % DAY_US
    until_us = day_us + DAY_US
    if newest < until_us:
        return None
    for cube in CUBES:
        for table, width_us in cube.packed:
            if until_us % width_us == 0:
                _sum_up(connection, cube, table, min(until_us - width_us, day_us), until_us)
    _pack_minutes(connection, day_us)
    return PackedUntil(until_us, now.calm)


def add_late(connection: Connection, late: Late) -> None:
    """Add late minutes to days that are packed already."""
    placed = {at: dict(minutes) for at, minutes in late.items()}
    here = tuple_(RollupLoadDayRow.cell_id, RollupLoadDayRow.start_us)
    columns = [getattr(RollupLoadDayRow, name) for name in LoadDay._fields]
    for some in in_groups(list(placed), LOADS_AT_ONCE):
        query = select(RollupLoadDayRow.cell_id, RollupLoadDayRow.start_us, *columns)
        for cell_id, start_us, *day in connection.execute(query.where(here.in_(some))).all():
            for minute, load in unpack_day(LoadDay(*map(bytes, day))):
                add_load(placed[cell_id, start_us], minute, load)
        connection.execute(delete(RollupLoadDayRow).where(here.in_(some)))
    _store(connection, placed)


def _sum_up(
    connection: Connection, cube: RollupCube, table: Any, start_us: int, until_us: int
) -> None:
    """Rebuild the rows of a coarser table in a span from the days or hours in it."""
    width_us = next(width for item, width in cube.packed if item is table)
    finer = cube.days if width_us == WEEK_US else cube.hours
    connection.execute(delete(table).where(table.start_us >= start_us, table.start_us < until_us))
    begin = hour_of(finer.start_us, width_us).label("begin_us")
    sums = [total(getattr(finer, name)).label(name) for name in cube.measures]
    added = (
        select(begin, finer.cell_id, *sums)
        .where(finer.start_us >= start_us, finer.start_us < until_us)
        .group_by("begin_us", finer.cell_id)
    )
    names = ["start_us", "cell_id", *cube.measures]
    connection.execute(insert(table).from_select(names, added))


def _pack_minutes(connection: Connection, day_us: int) -> None:
    until_us = day_us + DAY_US
    hour, day = RollupLoadHourRow, RollupLoadDayRow
    connection.execute(delete(day).where(day.start_us >= day_us, day.start_us < until_us))
    query = select(hour.cell_id, hour.start_us, hour.minutes).where(
        # The index begins with the cell: naming the cells avoids reading the hours of all days.
        hour.cell_id.in_(select(RollupLoadRow.id)),
        hour.start_us >= day_us,
        hour.start_us < until_us,
    )
    found: dict[tuple[int, int], dict[int, Load]] = {}
    for cell_id, start_us, minutes in connection.execute(query).all():
        into = found.setdefault((cell_id, day_us), {})
        first = (start_us - day_us) // MINUTE_US
        into.update((first + minute, load) for minute, load in unpack(minutes))
    _store(connection, found)


def _store(connection: Connection, days: Late) -> None:
    rows = [
        {"cell_id": cell_id, "start_us": start_us, **pack_day(minutes)._asdict()}
        for (cell_id, start_us), minutes in days.items()
    ]
    if rows:
        connection.execute(insert(RollupLoadDayRow), rows)
