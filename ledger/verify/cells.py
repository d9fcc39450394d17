"""Verification of the cells (dimension values) of sums, also for days without attempts.

Rows prove the sums of days whose attempts exist (`ledger.verify.rollups`). For other days, hours
must add up to their days, sums by tag and by key must agree for each day and team, and each team's
sums must equal its postings (`team_costs`).
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Select, func, select

from ledger.orm.tables import (
    AttemptRow,
    RollupCellRow,
    RollupDayRow,
    RollupPositionRow,
    RollupWaitingRow,
)
from ledger.orm.types import exact_sum
from ledger.seals.retirements import retired_until_us
from ledger.spans import DAY_US, HOUR_US, total
from ledger.sums.rollup import (
    ATTEMPTS,
    CUBES,
    KEYED,
    LATER,
    LIMB,
    LOAD_DAYS,
    LOAD_HOURS,
    LOADS,
    TAGGED,
    RollupCube,
)
from ledger.sums.tagsums import read_start
from ledger.verify.hours import Found

WRONG = "the sums are not under the names that they were added under"
_SHARED = ("attempts", "input_tokens", "output_tokens", "cost_high", "cost_low")


def cells_are_named(connection: Connection) -> Found:
    """Check that each cell matches its key, and that every sum has a cell.

    For days with retired attempts, sums by hour, by tag and by key must equal those by day.
    """
    for cells, names, tables in _cells():
        yield from _keys(connection, cells, names)
        for table, width_us in tables:
            query = select(table.start_us).where(table.start_us % width_us != 0).distinct()
            for start_us in connection.execute(query).scalars():
                yield f"{table.__tablename__} {start_us}", "no span of sums begins then"
            there = select(cells.id).where(cells.id == table.cell_id).exists()
            query = select(table.cell_id).where(~there).distinct()
            for number in connection.execute(query).scalars():
                yield f"{table.__tablename__} of {number}", "there is no such cell"
    until_us = whole_days_until(connection)
    if until_us:
        for cube in (*CUBES, *LATER):
            yield from _hours_are_days(connection, cube, until_us)
        yield from _teams_agree(connection, until_us)


def team_costs(connection: Connection, until_us: int) -> dict[str, int]:
    """Return by team the cost in sums of days before `until_us` less that of attempt rows."""
    cells, days = RollupCellRow, RollupDayRow
    high, low = exact_sum(days.cost_high), exact_sum(days.cost_low)
    summed = (
        select(cells.team_id, high, low)
        .join(cells, cells.id == days.cell_id)
        .where(days.start_us < until_us)
        .group_by(cells.team_id)
    )
    found = {team: int(h) * LIMB + int(rest) for team, h, rest in connection.execute(summed)}
    position = select(RollupPositionRow.seq).scalar_subquery()
    waiting = AttemptRow.seq.in_(select(RollupWaitingRow.attempt_seq))
    left = (
        select(AttemptRow.team_id, exact_sum(AttemptRow.cost_pusd))
        .where(AttemptRow.opened_us < until_us, AttemptRow.seq <= position, ~waiting)
        .group_by(AttemptRow.team_id)
    )
    for team, pusd in connection.execute(left):
        found[team] = found.get(team, 0) - int(pusd or 0)
    return found


def whole_days_until(connection: Connection) -> int:
    """Return the end of the last day with retired attempts, 0 if there are none."""
    return -(-retired_until_us(connection) // DAY_US) * DAY_US


def _cells() -> Iterator[tuple[Any, list[str], list[tuple[Any, int]]]]:
    for cube in (*CUBES, *LATER):
        yield cube.cells, list(cube.dimensions), [*cube.tiers, *cube.packed]
    yield LOADS, ["team_id", "pool", "model", "kind"], [(LOAD_HOURS, HOUR_US), (LOAD_DAYS, DAY_US)]


def _keys(connection: Connection, cells: Any, names: Sequence[str]) -> Found:
    query = select(cells.key, *(getattr(cells, name) for name in names))
    for key, *values in connection.execute(query):
        if msgspec.json.encode(tuple(values)).decode() != key:
            yield f"{cells.__tablename__} {key}", WRONG


def _hours_are_days(connection: Connection, cube: RollupCube, until_us: int) -> Found:
    hours, days = cube.hours, cube.days
    day = hours.start_us - hours.start_us % DAY_US
    summed = select(
        day.label("day_us"), hours.cell_id, *(total(getattr(hours, name)) for name in cube.measures)
    ).where(hours.start_us < until_us)
    columns = (days.start_us, days.cell_id, *(getattr(days, name) for name in cube.measures))
    stored = select(*columns).where(days.start_us < until_us)
    wanted = summed.group_by("day_us", hours.cell_id)
    for sums, others in ((wanted, stored), (stored, wanted)):
        for row in connection.execute(sums.except_(others).limit(1)):
            yield f"{days.__tablename__} {row[0]}", "its hours do not come to the day"


def _teams_agree(connection: Connection, until_us: int) -> Found:
    """Check that sums by tag and by key cover the same attempts as the other sums.

    Days before the start of these sums are skipped.
    """
    version = connection.execute(select(RollupPositionRow.version)).scalar() or 0
    start = read_start(connection, version)
    if start is None:
        return
    since_us = -(-start.from_us // DAY_US) * DAY_US
    for cube, names in ((TAGGED, ["team_id"]), (KEYED, ["team_id", "backend"])):
        wanted = _by_team(ATTEMPTS, names, since_us, until_us)
        said = _by_team(cube, names, since_us, until_us)
        for sums, others in ((wanted, said), (said, wanted)):
            for row in connection.execute(sums.except_(others).limit(1)):
                yield (
                    f"{cube.days.__tablename__} {row[0]}",
                    f"of {row[1]} it is not what other sums of the day say",
                )


def _by_team(
    cube: RollupCube, names: Sequence[str], since_us: int, until_us: int
) -> Select[*tuple[Any, ...]]:
    cells, days = cube.cells, cube.days
    by = [getattr(cells, name) for name in names]
    inside: tuple[ColumnElement[bool], ...] = (days.start_us >= since_us, days.start_us < until_us)
    return (
        select(days.start_us, *by, *(func.sum(getattr(days, name)) for name in _SHARED))
        .join(cells, cells.id == days.cell_id)
        .where(*inside)
        .group_by(days.start_us, *by)
    )
