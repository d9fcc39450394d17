"""Verification that stored sums equal the rows that they add up."""

from collections.abc import Generator, Mapping
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, func, select

from ledger.orm.tables import (
    AttemptRow,
    RollupDayRow,
    RollupHourRow,
    RollupPositionRow,
    RollupWaitingRow,
    exact_sum,
)
from ledger.queries.rollups import Sums, merge
from ledger.seals.retirements import RetiredTotals, retired_totals
from ledger.spans import DAY_US, HOUR_US, INPUT_TOKENS, MINUTE_US, OUTPUT_TOKENS
from ledger.sums.minutes import LoadDay, unpack_day
from ledger.sums.packing import read_packed_until
from ledger.sums.rollup import (
    CUBES,
    LATER,
    LIMB,
    LOAD_DAYS,
    LOAD_HOURS,
    LOADS,
    QUARTER_US,
    WEEK_US,
    RollupCube,
    final_condition,
    loads_of_rows,
    unpack,
)
from ledger.sums.samplehours import hours_are_the_samples
from ledger.sums.tagsums import read_start

Found = Generator[tuple[str, str], None, None]
Span = Mapping[str, int]
"""Parameters of one day: `counted`, `since`, `start_us` and `end_us`.

Statements are built once and are given these: SQLAlchemy spends more on a new statement than
SQLite on its answer, and one day takes about twenty.
"""
_WAITING = AttemptRow.seq.in_(select(RollupWaitingRow.attempt_seq))
_COUNTED = and_(AttemptRow.seq <= bindparam("counted"), ~_WAITING)
_TODAY = and_(
    _COUNTED,
    AttemptRow.seq > bindparam("since"),
    AttemptRow.opened_us >= bindparam("start_us"),
    AttemptRow.opened_us < bindparam("end_us"),
)


def sums_are_the_rows(connection: Connection) -> Found:
    """Check that the sums of each day equal those of the attempts that they count.

    Packed hours of engine samples must equal their samples.
    """
    position = select(RollupPositionRow.seq, RollupPositionRow.version)
    seq, version = connection.execute(position).one_or_none() or (0, 0)
    counted = and_(AttemptRow.seq <= seq, ~_WAITING)
    yield from _unfinished_attempts(connection, counted)
    gone = retired_totals(connection)
    whole_us = -(-gone.until_us // DAY_US) * DAY_US
    if gone.attempts:
        yield from _with_retired(connection, and_(counted, AttemptRow.opened_us < whole_us), gone)
    days, tags = read_packed_until(connection, version), read_start(connection, version)
    for start_us in _days(connection, counted, whole_us):
        today = {"counted": seq, "since": -1, "start_us": start_us, "end_us": start_us + DAY_US}
        over = start_us < days.until_us
        for cube in CUBES:
            rows = _of_rows(connection, cube, today)
            for table, width_us in (*cube.tiers, *(((cube.quarters, QUARTER_US),) if over else ())):
                if _coarser(rows, width_us) != _of_table(connection, cube, table, today):
                    yield _finding_of(table, start_us)
        if tags is not None:
            yield from _later(connection, {**today, "since": tags.since_seq})
        loads = _loads_of_rows(connection, today)
        if loads != _loads(connection, today):
            yield _finding_of(LOAD_HOURS, start_us)
        if over and loads != _loads_of_day(connection, today):
            yield _finding_of(LOAD_DAYS, start_us)
    yield from _weeks(connection, days.until_us)
    yield from hours_are_the_samples(connection)


def _weeks(connection: Connection, until_us: int) -> Found:
    """Check that the sums of weeks equal those of their days, which are checked themselves."""
    for cube in CUBES:
        day, week = cube.days, cube.weeks
        wanted: Sums = {}
        names = ["cell_id", *cube.measures]
        inside = day.start_us < until_us - until_us % WEEK_US
        query = select(day.start_us, *(getattr(day, name) for name in names)).where(inside)
        for start_us, cell_id, *values in connection.execute(query):
            merge(wanted, {(start_us - start_us % WEEK_US, cell_id): values})
        query = select(week.start_us, *(getattr(week, name) for name in names))
        for start_us, cell_id, *values in connection.execute(query.where(week.start_us < until_us)):
            if wanted.pop((start_us, cell_id), None) != values:
                yield _finding_of(week, start_us)
        yield from (_finding_of(week, start_us) for start_us, _ in wanted)


def _later(connection: Connection, today: Span) -> Found:
    """Check sums by tag and key of the attempts counted since these sums began."""
    for cube in LATER:
        rows = _of_rows(connection, cube, today)
        for table, width_us in cube.tiers:
            if _coarser(rows, width_us) != _of_table(connection, cube, table, today):
                yield _finding_of(table, today["start_us"])


def _finding_of(table: Any, start_us: int) -> tuple[str, str]:
    return (
        f"{table.__tablename__} {start_us}",
        "the sums of this day are not those of its rows: `breakeven ledger rebuild`",
    )


def _unfinished_attempts(connection: Connection, counted: ColumnElement[bool]) -> Found:
    query = select(AttemptRow.attempt_id).where(counted, ~final_condition())
    for attempt_id in connection.execute(query).scalars():
        yield attempt_id, "added up, though records may still change it"


def _with_retired(connection: Connection, rows: ColumnElement[bool], gone: RetiredTotals) -> Found:
    """Check that days with retired attempts equal the retired totals plus existing attempts."""
    until_us = -(-gone.until_us // DAY_US) * DAY_US
    names = ("attempts", "input_tokens", "output_tokens", "engine_us")
    left = connection.execute(
        select(
            func.count(), exact_sum(INPUT_TOKENS), exact_sum(OUTPUT_TOKENS),
            exact_sum(AttemptRow.engine_us), exact_sum(AttemptRow.cost_pusd),
        ).where(rows)
    ).one()  # fmt: skip
    wanted = [int(rest) for rest in left]
    for place, name in enumerate((*names, "cost_pusd")):
        wanted[place] += getattr(gone, name)
    for table in (RollupHourRow, RollupDayRow):
        sums = [exact_sum(getattr(table, name)) for name in (*names, "cost_high", "cost_low")]
        *found, high, low = connection.execute(select(*sums).where(table.start_us < until_us)).one()
        if [*map(int, found), int(high) * LIMB + int(low)] != wanted:
            yield f"{table.__tablename__} before {until_us}", "not what was retired and is left"


def _days(connection: Connection, counted: ColumnElement[bool], since_us: int) -> list[int]:
    ends = select(func.min(AttemptRow.opened_us), func.max(AttemptRow.opened_us)).where(counted)
    first, last = connection.execute(ends).one()
    found: set[int] = set()
    if first is not None:
        found.update(range(first - first % DAY_US, last + 1, DAY_US))
    for cube in (*CUBES, *LATER):
        found.update(connection.execute(select(cube.days.start_us).distinct()).scalars())
    return sorted(number for number in found if number >= since_us)


def _of_rows(connection: Connection, cube: RollupCube, today: Span) -> Sums:
    """Return sums by hour; a day's rows are read once."""
    found: Sums = {}
    places = 1 + len(cube.dimensions)
    for row in connection.execute(_rows_query(cube), today):
        merge(found, {tuple(row[:places]): list(row[places:])})
    return found


@cache
def _rows_query(cube: RollupCube) -> Select[Any]:
    return cube.of_rows(HOUR_US).where(_TODAY)


def _coarser(hours: Sums, width_us: int) -> Sums:
    """Return the sums by a longer span."""
    if width_us == HOUR_US:
        return hours
    found: Sums = {}
    for (start_us, *cell), values in hours.items():
        merge(found, {(start_us - start_us % width_us, *cell): list(values)})
    return found


def _of_table(connection: Connection, cube: RollupCube, table: Any, today: Span) -> Sums:
    places = 1 + len(cube.dimensions)
    rows = connection.execute(_table_query(cube, table), today)
    return {tuple(row[:places]): list(row[places:]) for row in rows}


@cache
def _table_query(cube: RollupCube, table: Any) -> Select[Any]:
    cells = cube.cells
    return (
        select(
            table.start_us,
            *(getattr(cells, name) for name in cube.dimensions),
            *(getattr(table, name) for name in cube.measures),
        )
        .join(cells, cells.id == table.cell_id)
        .where(table.start_us >= bindparam("start_us"), table.start_us < bindparam("end_us"))
    )


def _loads_of_rows(connection: Connection, today: Span) -> Sums:
    found: Sums = {}
    for minute_us, team, pool, model, kind, *load in connection.execute(_LOAD_ROWS, today):
        for whose in (team, None):
            merge(found, {(minute_us, whose, pool, model, kind): list(load)})
    return found


def _loads(connection: Connection, today: Span) -> Sums:
    found: Sums = {}
    for hour_us, *whose, minutes in connection.execute(_STORED_LOADS, today):
        assert hour_us % HOUR_US == 0
        for minute, load in unpack(minutes):
            found[hour_us + minute * MINUTE_US, *whose] = list(load)
    return found


def _loads_of_day(connection: Connection, today: Span) -> Sums:
    found: Sums = {}
    for team, pool, model, kind, *columns in connection.execute(_STORED_LOAD_DAY, today):
        for minute, load in unpack_day(LoadDay(*map(bytes, columns))):
            found[today["start_us"] + minute * MINUTE_US, team, pool, model, kind] = list(load)
    return found


_LOAD_ROWS = loads_of_rows().where(_TODAY)
_LOAD_CELL = (LOADS.team_id, LOADS.pool, LOADS.model, LOADS.kind)
_STORED_LOADS = (
    select(LOAD_HOURS.start_us, *_LOAD_CELL, LOAD_HOURS.minutes)
    .join(LOADS, LOADS.id == LOAD_HOURS.cell_id)
    .where(LOAD_HOURS.start_us >= bindparam("start_us"), LOAD_HOURS.start_us < bindparam("end_us"))
)
_STORED_LOAD_DAY = (
    select(*_LOAD_CELL, *(getattr(LOAD_DAYS, name) for name in LoadDay._fields))
    .join(LOADS, LOADS.id == LOAD_DAYS.cell_id)
    .where(LOAD_DAYS.start_us == bindparam("start_us"))
)
