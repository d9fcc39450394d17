"""The follower that adds attempts up by hour and day, seconds after they are sealed.

    while Rollups(engine).follow():
        pass

The follower reads the rows of all writers. A final attempt is counted at once. An attempt that is
not final is noted as waiting and counted later. Position, waiting attempts and sums change in one
transaction, so sums, waiting attempts and rows after the position hold every attempt exactly once,
even if the process is killed. Any host may follow, but only one at a time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import add
from typing import Any

import msgspec
from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    delete,
    func,
    insert,
    select,
    text,
    tuple_,
    update,
)
from sqlalchemy.exc import IntegrityError, OperationalError

from ledger.database import in_groups
from ledger.orm.tables import (
    AttemptRow,
    EngineSampleHourRow,
    RollupPositionRow,
    RollupWaitingRow,
    SealRow,
)
from ledger.seals.retirements import retired_until_us
from ledger.spans import DAY_US, HOUR_US, MINUTE_US
from ledger.sums.packing import (
    CALM,
    Late,
    PackedUntil,
    add_late,
    pack_next,
    read_packed_until,
    write_packed_until,
)
from ledger.sums.rollup import (
    CUBES,
    LATER,
    LOAD_DAYS,
    LOAD_HOURS,
    LOADS,
    QUARTER_US,
    WEEK_US,
    Load,
    RollupCube,
    add_load,
    final_condition,
    loads_of_rows,
    pack,
    unpack,
)
from ledger.sums.tagsums import EVERY, ensure_start
from ledger.sums.tagsums import write_start as keep_tagging
from ledger.upserts import insert_of

NAME = "attempts"
ROWS_AT_ONCE = 20_000  # attempts per transaction, for which SQLite's other writers wait
_PACKED = (QUARTER_US, WEEK_US)
Rolled = tuple[int, int]  # seq, version


class RetiredError(Exception):
    """A refusal to rebuild sums whose attempts were deleted after retention."""


class Rollups:
    def __init__(self, engine: Engine, *, rows_at_once: int = ROWS_AT_ONCE) -> None:
        self._engine = engine
        self._at_once = rows_at_once

    def follow(self) -> int:
        """Add newly sealed attempts. Return the number of attempts that were read or settled."""
        try:
            with self._open_snapshot() as connection:
                here = _lock(connection)
                if here is None:
                    return 0
                found = self._follow(connection, *here)
                connection.commit()
                return found
        except (IntegrityError, OperationalError) as error:
            if isinstance(error, IntegrityError) or _is_overtaken(error):
                return 0
            raise

    def rebuild(self, passed: Callable[[int, int], None] | None = None) -> int | None:
        """Delete all sums and add up all sealed attempts again; `None` if another host follows.

        Reads use rows until it is done. `passed` is called with the number of attempts added so far
        and in all; days are packed after the last call. Raises `RetiredError` if attempts were
        deleted.
        """
        with self._open_snapshot() as connection:
            if retired_until_us(connection):
                raise RetiredError("attempts were retired: their sums cannot be made anew")
            here = _lock(connection)
            if here is None:
                return None
            for table in _sums():
                connection.execute(delete(table))
            connection.execute(delete(RollupWaitingRow))
            connection.execute(update(RollupPositionRow).values(seq=0, version=here[1] + 1))
            write_packed_until(connection, here[1] + 1, PackedUntil(0, CALM))
            keep_tagging(connection, here[1] + 1, EVERY)
            connection.commit()
        while self.follow():
            if passed is not None:
                passed(*self._position())
        return self._position()[0]

    def _position(self) -> tuple[int, int]:
        """Return the last attempt that is in the sums, and the last one that is sealed."""
        with self._engine.connect() as connection:
            here = int(connection.execute(select(RollupPositionRow.seq)).scalar_one())
            return here, int(
                connection.execute(select(func.max(SealRow.attempts_to))).scalar() or 0
            )

    def _open_snapshot(self) -> Connection:
        """Open a snapshot, so that an attempt that settles during a pass is not counted twice."""
        connection = self._engine.connect()
        if self._engine.dialect.name == "postgresql":
            connection = connection.execution_options(isolation_level="REPEATABLE READ")
            # JIT compilation of such a statement takes longer than its execution.
            connection.execute(text("SET LOCAL jit = off"))
            connection.execute(text("SET LOCAL work_mem = '64MB'"))
        return connection

    def _follow(self, connection: Connection, seq: int, version: int) -> int:
        sealed = connection.execute(select(func.max(SealRow.attempts_to))).scalar() or 0
        until = min(sealed, _beyond(connection, seq, self._at_once))
        settled = _settled_attempts(connection, self._at_once)
        days = read_packed_until(connection, version)
        if until <= seq and not settled:
            more = pack_next(connection, days)
            if more is not None:
                write_packed_until(connection, version, more)
            return int(more is not None)
        fresh = (AttemptRow.seq > seq) & (AttemptRow.seq <= until)
        passed = connection.execute(
            insert(RollupWaitingRow).from_select(
                ["attempt_seq", "opened_us"],
                select(AttemptRow.seq, AttemptRow.opened_us).where(fresh, ~final_condition()),
            )
        ).rowcount
        counted: list[ColumnElement[bool]] = [fresh & final_condition()]
        counted += [AttemptRow.seq.in_(some) for some in in_groups(settled)]
        tagging = ensure_start(connection, seq, version)
        for which in counted:
            for cube in CUBES:
                self._add(connection, cube, which, days)
            for cube in LATER:
                self._add(connection, cube, which & tagging.counts(), days)
            self._add_loads(connection, which, days)
        for some in in_groups(settled):
            gone = RollupWaitingRow.attempt_seq.in_(some)
            connection.execute(delete(RollupWaitingRow).where(gone))
        connection.execute(
            update(RollupPositionRow).values(seq=max(seq, until), version=version + 1)
        )
        write_packed_until(connection, version + 1, replace(days, calm=days.calm + 1))
        keep_tagging(connection, version + 1, tagging)
        return max(1, until - seq, passed, len(settled))

    def _add(self, connection: Connection, cube: RollupCube, which: Any, days: PackedUntil) -> None:
        """Add attempts to all tiers from one read; days and weeks come from the hours' sums."""
        sums = connection.execute(cube.of_rows(HOUR_US).where(which)).all()
        last = 1 + len(cube.dimensions)
        cells = {tuple(row[1:last]) for row in sums}
        ids = _ids(connection, cube.cells, list(cube.dimensions), cells)
        for table, width_us in cube.tiers + cube.packed:
            added: dict[tuple[int, int], Sequence[int]] = {}
            late = width_us in _PACKED
            for row in sums:
                if late and not days.has_packed(row[0], max(width_us, DAY_US)):
                    continue
                at = (row[0] - row[0] % width_us, ids[tuple(row[1:last])])
                before = added.get(at)
                more = row[last:]
                added[at] = more if before is None else list(map(add, before, more))
            self._upsert(connection, cube, table, added)

    def _upsert(
        self,
        connection: Connection,
        cube: RollupCube,
        table: Any,
        added: Mapping[tuple[int, int], Sequence[int]],
    ) -> None:
        if not added:
            return
        statement = _insert(connection, table)
        more = {name: getattr(table, name) + statement.excluded[name] for name in cube.measures}
        names = ["start_us", "cell_id", *cube.measures]
        connection.execute(
            statement.on_conflict_do_update(index_elements=["start_us", "cell_id"], set_=more),
            [dict(zip(names, (*at, *added[at]), strict=True)) for at in sorted(added)],
        )

    def _add_loads(self, connection: Connection, which: Any, days: PackedUntil) -> None:
        rows = connection.execute(loads_of_rows().where(which)).all()
        loads: dict[tuple[tuple[Any, ...], int], dict[int, Load]] = {}
        for minute_us, team, pool, model, kind, *figures in rows:
            start = minute_us - minute_us % HOUR_US
            minute = (minute_us - start) // MINUTE_US
            load: Load = tuple(map(int, figures))  # type: ignore[assignment]  # five columns
            for whose in (team, None):
                add_load(loads.setdefault(((whose, pool, model, kind), start), {}), minute, load)
        names = ["team_id", "pool", "model", "kind"]
        ids = _ids(connection, LOADS, names, {of for of, _ in loads})
        placed = {(ids[of], start): minutes for (of, start), minutes in loads.items()}
        add_late(connection, _late(placed, days))
        here = tuple_(LOAD_HOURS.cell_id, LOAD_HOURS.start_us)
        for some in in_groups(list(placed)):
            query = select(LOAD_HOURS.cell_id, LOAD_HOURS.start_us, LOAD_HOURS.minutes)
            for cell_id, start, minutes in connection.execute(query.where(here.in_(some))):
                for minute, load in unpack(minutes):
                    add_load(placed[cell_id, start], minute, load)
        if placed:
            statement = _insert(connection, LOAD_HOURS)
            statement = statement.on_conflict_do_update(
                index_elements=["cell_id", "start_us"],
                set_={"minutes": statement.excluded.minutes},
            )
            connection.execute(
                statement,
                [
                    {"cell_id": cell_id, "start_us": start, "minutes": pack(minutes)}
                    for (cell_id, start), minutes in placed.items()
                ],
            )


def _ids(
    connection: Connection, table: Any, names: Sequence[str], wanted: set[Any]
) -> dict[tuple[Any, ...], int]:
    """Return the cell numbers of combinations of dimension values; new ones are inserted."""
    keys = {msgspec.json.encode(values).decode(): values for values in wanted}
    found = _numbers(connection, table, keys)
    missing = sorted(keys.keys() - found.keys())
    if missing:
        rows = [{"key": key, **dict(zip(names, keys[key], strict=True))} for key in missing]
        connection.execute(_insert(connection, table).on_conflict_do_nothing(), rows)
        found |= _numbers(connection, table, missing)
    return {keys[key]: number for key, number in found.items()}


def _numbers(connection: Connection, table: Any, keys: Iterable[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for some in in_groups(list(keys)):
        query = select(table.key, table.id).where(table.key.in_(some))
        found.update((row[0], row[1]) for row in connection.execute(query))
    return found


def _lock(connection: Connection) -> Rolled | None:
    """Lock and return the position of the sums; `None` if another host has the lock."""
    row = {"name": NAME, "seq": 0, "version": 0}
    query = select(RollupPositionRow.seq, RollupPositionRow.version)
    if connection.execute(query).one_or_none() is None:
        connection.execute(_insert(connection, RollupPositionRow).on_conflict_do_nothing(), [row])
    found = connection.execute(query.with_for_update(skip_locked=True)).one_or_none()
    return None if found is None else (found[0], found[1])


def _beyond(connection: Connection, seq: int, at_once: int) -> int:
    """Return the number of the last of `at_once` attempts after `seq`."""
    some = (
        select(AttemptRow.seq).where(AttemptRow.seq > seq).order_by(AttemptRow.seq).limit(at_once)
    )
    return connection.execute(select(func.max(some.subquery().c.seq))).scalar() or seq


def _settled_attempts(connection: Connection, at_once: int) -> list[int]:
    """Return up to `at_once` waiting attempts that are final now."""
    query = (
        select(RollupWaitingRow.attempt_seq)
        .join(AttemptRow, AttemptRow.seq == RollupWaitingRow.attempt_seq)
        .where(final_condition())
        .order_by(RollupWaitingRow.attempt_seq)
        .limit(at_once)
    )
    return list(connection.execute(query).scalars())


def _late(hours: Mapping[tuple[int, int], Mapping[int, Load]], days: PackedUntil) -> Late:
    """Return the minutes that belong to days that are packed already."""
    found: dict[tuple[int, int], dict[int, Load]] = {}
    for (cell_id, start_us), minutes in hours.items():
        if days.has_packed(start_us, DAY_US):
            first = start_us % DAY_US // MINUTE_US
            day = found.setdefault((cell_id, start_us - start_us % DAY_US), {})
            day.update((first + minute, load) for minute, load in minutes.items())
    return found


def _sums() -> list[Any]:
    kept = [table for cube in (*CUBES, *LATER) for table, _ in cube.tiers + cube.packed]
    return [*kept, LOAD_HOURS, LOAD_DAYS, EngineSampleHourRow]  # packed again by the writer


def _insert(connection: Connection, table: Any) -> Any:
    on_conflict = insert_of(connection.dialect)
    return on_conflict(table)


def _is_overtaken(error: OperationalError) -> bool:
    """Return whether another host moved the sums between the snapshot and the lock."""
    return getattr(error.orig, "sqlstate", None) == "40001"
