"""Where a read finds attempts: sums of whole hours and days, and rows for all that they leave out.

Sums hold what was final when they passed it (`orm_rollups`). The rest is read from the rows: what
lies beyond their position, what waits, and the ends of a span that cuts an hour. Together every
attempt counts once, whenever the sums move on: `settle_on` reads again when they did meanwhile.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select, union_all

from ledger.orm import Attempt, RollupPosition, RollupWaiting
from ledger.queries_scope import DAY_US, HOUR_US, Scope, rows, total
from ledger.rollup import Cube

TRIES = 20
BEHIND = 200_000  # rows beyond the position: the sums are being made, and rows alone are as good
Sums = dict[tuple[Any, ...], list[int]]
Found = TypeVar("Found")
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Rolled:
    """How far the sums are."""

    seq: int
    version: int


@dataclass(frozen=True, slots=True)
class Parts:
    """A span cut into whole days, whole hours beside them, and what is left at its ends."""

    days: tuple[Span, ...]
    hours: tuple[Span, ...]
    edges: tuple[Span, ...]

    @property
    def whole(self) -> tuple[Span, ...]:
        return self.days + self.hours

    def tiers(self, cube: Cube) -> Iterator[tuple[Any, tuple[Span, ...]]]:
        yield from ((cube.hours, self.hours), (cube.days, self.days))


def settle_on(connection: Connection, read: Callable[[Rolled | None], Found]) -> Found:
    """What `read` finds at one state of the sums; it is told None where they are of no use."""
    for _ in range(TRIES):
        before = rolled(connection)
        found = read(before)
        if before is None or _version(connection) == before.version:
            return found
    return read(None)


def rolled(connection: Connection) -> Rolled | None:
    query = select(RollupPosition.seq, RollupPosition.version)
    row = connection.execute(query).one_or_none()
    last = connection.execute(select(func.max(Attempt.seq))).scalar() or 0
    if row is None or not row.seq or last - row.seq > BEHIND:
        return None
    return Rolled(*row)


def parts_of(scope: Scope, here: Rolled | None, bucket_us: int = DAY_US) -> Parts | None:
    """How to read a scope in such buckets; None: from its rows alone."""
    if here is None or bucket_us % HOUR_US:
        return None
    first, last = -(-scope.start_us // HOUR_US) * HOUR_US, scope.end_us // HOUR_US * HOUR_US
    if first >= last:
        return None
    edges = _cut(scope.start_us, first) + _cut(last, scope.end_us)
    dawn, dusk = -(-first // DAY_US) * DAY_US, last // DAY_US * DAY_US
    if bucket_us % DAY_US or dawn >= dusk:
        return Parts((), ((first, last),), edges)
    return Parts(((dawn, dusk),), _cut(first, dawn) + _cut(dusk, last), edges)


def inside(column: Any, spans: tuple[Span, ...]) -> ColumnElement[bool]:
    return or_(*(and_(column >= start, column < end) for start, end in spans))


def live(parts: Parts, here: Rolled) -> list[ColumnElement[bool]]:
    """Conditions on attempts, one a statement: together all rows that no sum of `parts` holds."""
    waiting = select(RollupWaiting.attempt_seq).where(inside(RollupWaiting.opened_us, parts.whole))
    beyond = select(Attempt.seq).where(
        Attempt.seq > here.seq, inside(Attempt.opened_us, parts.whole)
    )
    found = [Attempt.seq.in_(union_all(waiting, beyond))]
    return found + [inside(Attempt.opened_us, (edge,)) for edge in parts.edges]


@dataclass(frozen=True, slots=True)
class Ask:
    """Sums of `measures` (None: all) by start (0 where no bucket is asked for) and `by`.

    `where` makes conditions from what has the dimensions as attributes.
    """

    by: tuple[str, ...]
    bucket_us: int | None = None
    where: Callable[[Any], list[ColumnElement[bool]]] = lambda _: []
    measures: tuple[str, ...] | None = None

    def of(self, cube: Cube) -> tuple[str, ...]:
        return tuple(cube.measures) if self.measures is None else self.measures


def sums(connection: Connection, cube: Cube, scope: Scope, ask: Ask) -> Sums:
    """What was asked for, of one state of the sums."""
    return settle_on(connection, lambda here: sums_at(connection, cube, scope, ask, here))


def sums_at(
    connection: Connection, cube: Cube, scope: Scope, ask: Ask, here: Rolled | None
) -> Sums:
    """The same for who reads more than this at one state of the sums, inside `settle_on`."""
    parts = parts_of(scope, here, ask.bucket_us or DAY_US)
    if here is None or parts is None:
        return _of_rows(connection, cube, scope, ask, inside(Attempt.opened_us, (
            (scope.start_us, scope.end_us),
        )))  # fmt: skip
    found: Sums = {}
    for table, spans in parts.tiers(cube):
        if spans:
            merge(found, _of_table(connection, cube, table, scope, ask, spans))
    for rest in live(parts, here):
        merge(found, _of_rows(connection, cube, scope, ask, rest))
    return found


def _of_table(
    connection: Connection,
    cube: Cube,
    table: Any,
    scope: Scope,
    ask: Ask,
    spans: tuple[Span, ...],
) -> Sums:
    """Added up by number first, so that few rows are joined with what they stand for.

    Where each row is a bucket of its own that would add up nothing.
    """
    cells = cube.cells
    which = ask.where(cells)
    if scope.team is not None:
        which.append(cells.team_id == scope.team)
    starts = [] if ask.bucket_us is None else [
        (table.start_us - table.start_us % ask.bucket_us).label("bucket_us")
    ]  # fmt: skip
    each = ask.bucket_us == (DAY_US if table is cube.days else HOUR_US)
    figures = [getattr(table, name) for name in ask.of(cube)]
    added = select(
        *starts, table.cell_id, *(one if each else total(one).label(one.key) for one in figures)
    ).where(inside(table.start_us, spans))
    if which:
        added = added.where(table.cell_id.in_(select(cells.id).where(*which)))
    if not each:
        added = added.group_by(*(start.name for start in starts), table.cell_id)
    one = added.subquery()
    named = [getattr(cells, name).label(f"by_{name}") for name in ask.by]
    whole = set(ask.by) == set(cube.dimensions)  # then each is one cell: nothing to add up again
    query = select(
        *(one.c[start.name] for start in starts),
        *named,
        *(one.c[name] if whole else total(one.c[name]).label(name) for name in ask.of(cube)),
    ).join(cells, cells.id == one.c.cell_id)
    grouped = [*starts, *named]
    if grouped and not whole:
        query = query.group_by(*(of.name for of in grouped))
    found: Sums = {}
    _collect(found, rows(connection, query), len(ask.by), bucketed=ask.bucket_us is not None)
    return found


def _of_rows(
    connection: Connection, cube: Cube, scope: Scope, ask: Ask, which: ColumnElement[bool]
) -> Sums:
    named = [cube.dimensions[name].label(f"by_{name}") for name in ask.by]
    starts = [] if ask.bucket_us is None else [
        (Attempt.opened_us - Attempt.opened_us % ask.bucket_us).label("bucket_us")
    ]  # fmt: skip
    columns = [*starts, *named, *(cube.measures[name] for name in ask.of(cube))]
    query = cube.joined(select(*columns).where(which, *ask.where(_Columns(cube))))
    grouped = [*starts, *named]
    if grouped:
        query = query.group_by(*(one.name for one in grouped))
    found: Sums = {}
    _collect(
        found, rows(connection, scope.narrow(query)), len(ask.by),
        bucketed=ask.bucket_us is not None,
    )  # fmt: skip
    return found


class _Columns:
    """The dimensions of a cube as they are in rows."""

    def __init__(self, cube: Cube) -> None:
        self._dimensions = cube.dimensions

    def __getattr__(self, name: str) -> Any:
        return self._dimensions[name]


def _collect(found: Sums, listed: list[tuple[Any, ...]], places: int, *, bucketed: bool) -> None:
    for row in listed if bucketed else [(0, *row) for row in listed]:
        merge(found, {row[: places + 1]: list(row[places + 1 :])})


def merge(into: Sums, more: Sums) -> None:
    for key, values in more.items():
        before = into.get(key)
        if before is None:
            into[key] = values
        else:
            for place, value in enumerate(values):
                before[place] += value


def _version(connection: Connection) -> int | None:
    return connection.execute(select(RollupPosition.version)).scalar()


def _cut(start_us: int, end_us: int) -> tuple[Span, ...]:
    return ((start_us, end_us),) if start_us < end_us else ()
