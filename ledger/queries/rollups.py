"""Reads that combine sums of hours up to weeks with rows for the rest.

Sums hold attempts that were final when the sums passed them (`ledger.orm.rollups`). Rows supply the
rest: attempts beyond the sums' position, attempts that wait, and partial hours at the ends of a
span. A span that ends in the newest hour takes that hour's sums, minus the rows after its end.
Every attempt counts once: `read_consistently` repeats a read during which the sums moved.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select, union_all

from ledger.orm.tables import (
    AttemptRow,
    RetirementRow,
    RollupPackingRow,
    RollupPositionRow,
    RollupWaitingRow,
)
from ledger.spans import DAY_US, HOUR_US, Scope, rows, total
from ledger.sums.rollup import QUARTER_US, WEEK_US, RollupCube, hour_of

TRIES = 20
WIDTHS = (WEEK_US, DAY_US, QUARTER_US, HOUR_US)
PACKED = (WEEK_US, QUARTER_US)  # made of days that are over
# Attempts beyond the position. Above this, the sums are being built: rows are read if all exist.
BEHIND = 200_000
Sums = dict[tuple[Any, ...], list[int]]
Found = TypeVar("Found")
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class RollupProgress:
    """The position of the sums, the end of coarser ones, and the newest attempt's opening.

    `gone_us`: before it rows may be retired; 0 where none is.
    """

    seq: int
    version: int
    newest_us: int | None = None
    packed_us: int = 0
    gone_us: int = 0

    def summed(self, scope: Scope) -> Scope:
        """Return the scope as sums can have it: an hour whose rows may be gone is not cut.

        It counts where it begins, as GPU hours do, so parts of a period add up to it.
        """
        ends = [
            -(-at_us // HOUR_US) * HOUR_US if at_us - at_us % HOUR_US < self.gone_us else at_us
            for at_us in (scope.start_us, scope.end_us)
        ]
        return replace(scope, start_us=ends[0], end_us=ends[1])


@dataclass(frozen=True, slots=True)
class SpanTiers:
    """A span split into tiers of sums, widest first, and edges that are read from rows.

    `after`: the part of the last hour's sums beyond the span, which is subtracted.
    """

    tiers: tuple[tuple[int, tuple[Span, ...]], ...]
    edges: tuple[Span, ...]
    after: tuple[Span, ...] = ()

    @property
    def within(self) -> tuple[Span, ...]:
        """Return the spans that sums cover inside the scope."""
        ends = [start for start, _ in self.after]
        return tuple((start, min([end, *ends])) for _, spans in self.tiers for start, end in spans)


def read_consistently(
    connection: Connection, read: Callable[[RollupProgress | None], Found]
) -> Found:
    """Return the result of `read` on one state of the sums, or on `None` if sums are unusable."""
    for _ in range(TRIES):
        before = rollup_progress(connection)
        found = read(before)
        if before is None or _version(connection) == before.version:
            return found
    return read(None)


def rollup_progress(connection: Connection) -> RollupProgress | None:
    query = select(
        RollupPositionRow.seq,
        RollupPositionRow.version,
        select(func.max(AttemptRow.opened_us)).scalar_subquery(),
        RollupPackingRow.until_us,
        RollupPackingRow.version,
        select(func.max(AttemptRow.seq)).scalar_subquery(),
        select(func.max(RetirementRow.until_us)).scalar_subquery(),
    ).outerjoin(RollupPackingRow, RollupPackingRow.version == RollupPositionRow.version)
    row = connection.execute(query).one_or_none()
    if row is None or not row[0]:
        return None
    gone_us = int(row[6] or 0)
    if (row[5] or 0) - row[0] > BEHIND and not gone_us:
        return None
    return RollupProgress(row[0], row[1], row[2], row[3] or 0, gone_us)


def parts_of(
    scope: Scope, here: RollupProgress | None, bucket_us: int | None = None
) -> SpanTiers | None:
    """Return the tiers of a scope for a bucket width, or `None` if only rows can answer.

    Without `bucket_us`, the scope is one bucket.
    """
    if here is None or (bucket_us or HOUR_US) % HOUR_US:
        return None
    first, last = -(-scope.start_us // HOUR_US) * HOUR_US, scope.end_us // HOUR_US * HOUR_US
    after: tuple[Span, ...] = ()
    until_us = last + HOUR_US
    newest_us = until_us if here.newest_us is None else here.newest_us
    # Read the smaller part: the rows of the last hour, or those after the end of the span.
    if newest_us < until_us and newest_us - scope.end_us < scope.end_us - last:
        last, after = until_us, ((scope.end_us, until_us),)
    if first >= last:
        return None
    edges = _cut(scope.start_us, first) + _cut(last, scope.end_us)
    widths = [number for number in WIDTHS if (bucket_us or number) % number == 0]
    spans = _tiers((first, last), widths, here.packed_us)
    return SpanTiers(
        tuple((width, tuple(sorted(spans[width]))) for width in widths if width in spans),
        edges,
        after,
    )


def _tiers(span: Span, widths: Sequence[int], packed_us: int) -> dict[int, list[Span]]:
    """Return spans by width: the widest inside, the rest in narrower ones.

    Packed widths end at `packed_us`.
    """
    if span[0] >= span[1]:
        return {}
    (width, *narrower), (start, end) = widths, span
    limit = min(end, packed_us) if width in PACKED else end
    dawn, dusk = -(-start // width) * width, limit // width * width
    if dawn >= dusk:
        return _tiers(span, narrower, packed_us)
    found = {width: [(dawn, dusk)]}
    for rest in ((start, dawn), (dusk, end)):
        for other, spans in _tiers(rest, narrower, packed_us).items():
            found.setdefault(other, []).extend(spans)
    return found


def in_spans(column: Any, spans: tuple[Span, ...]) -> ColumnElement[bool]:
    return or_(*(and_(column >= start, column < end) for start, end in spans))


def live_conditions(parts: SpanTiers, here: RollupProgress) -> list[ColumnElement[bool]]:
    """Return conditions, one per statement, that select all attempts in no sum of `parts`."""
    within = parts.within
    waiting = select(RollupWaitingRow.attempt_seq).where(
        in_spans(RollupWaitingRow.opened_us, within)
    )
    beyond = select(AttemptRow.seq).where(
        AttemptRow.seq > here.seq, in_spans(AttemptRow.opened_us, within)
    )
    found = [AttemptRow.seq.in_(union_all(waiting, beyond))]
    return found + [in_spans(AttemptRow.opened_us, (edge,)) for edge in parts.edges]


def surplus_conditions(parts: SpanTiers, here: RollupProgress) -> list[ColumnElement[bool]]:
    """Return conditions, one per statement, for attempts that `parts` sums up beyond the span.

    Nothing is read beyond the newest attempt: most often there is no such row.
    """
    newest_us = 0 if here.newest_us is None else here.newest_us
    return [
        and_(
            in_spans(AttemptRow.opened_us, (span,)),
            AttemptRow.seq <= here.seq,
            AttemptRow.seq.not_in(select(RollupWaitingRow.attempt_seq)),
        )
        for span in parts.after
        if span[0] <= newest_us
    ]


@dataclass(frozen=True, slots=True)
class SumQuery:
    """A query of sums of `measures` (`None`: all) by bucket start and the dimensions `by`.

    Without `bucket_us` the start is 0. `where` receives an object with the dimensions as attributes
    and returns conditions.
    """

    by: tuple[str, ...]
    bucket_us: int | None = None
    where: Callable[[Any], list[ColumnElement[bool]]] = lambda _: []
    measures: tuple[str, ...] | None = None

    def of(self, cube: RollupCube) -> tuple[str, ...]:
        return tuple(cube.measures) if self.measures is None else self.measures


def sums(connection: Connection, cube: RollupCube, scope: Scope, ask: SumQuery) -> Sums:
    """Return the requested sums, read from one state."""
    return read_consistently(connection, lambda here: sums_at(connection, cube, scope, ask, here))


def sums_at(
    connection: Connection,
    cube: RollupCube,
    scope: Scope,
    ask: SumQuery,
    here: RollupProgress | None,
) -> Sums:
    """Return the sums as `read_consistently` gives them: at the state `here`, for several reads."""
    scope = scope if here is None else here.summed(scope)
    parts = parts_of(scope, here, ask.bucket_us)
    if here is None or parts is None:
        return _of_rows(connection, cube, scope, ask, in_spans(AttemptRow.opened_us, (
            (scope.start_us, scope.end_us),
        )))  # fmt: skip
    found = _of_tables(connection, cube, parts, scope, ask)
    for rest in live_conditions(parts, here):
        merge(found, _of_rows(connection, cube, scope, ask, rest))
    for more in surplus_conditions(parts, here):
        beyond = replace(scope, end_us=parts.after[-1][1])
        _subtract_sums(found, _of_rows(connection, cube, beyond, ask, more))
    return found


def _of_tables(
    connection: Connection, cube: RollupCube, parts: SpanTiers, scope: Scope, ask: SumQuery
) -> Sums:
    """Read all tiers in one statement.

    For a single bucket, sums are first added up by dimension number, so that few rows are joined
    with the dimensions' values. With several buckets that would save little.
    """
    cells = cube.cells
    which = ask.where(cells)
    if scope.team is not None:
        which.append(cells.team_id == scope.team)
    bucketed = ask.bucket_us is not None
    pieces = []
    for width_us, spans in parts.tiers:
        table = cube.tier(width_us)
        start = [hour_of(table.start_us, ask.bucket_us).label("bucket_us")] if ask.bucket_us else []
        figures = [getattr(table, name) for name in ask.of(cube)]
        piece = select(*start, table.cell_id, *figures).where(in_spans(table.start_us, spans))
        if which:
            piece = piece.where(table.cell_id.in_(select(cells.id).where(*which)))
        pieces.append(piece)
    subquery = (union_all(*pieces) if len(pieces) > 1 else pieces[0]).subquery()
    if not bucketed:
        sums_of = [total(subquery.c[name]).label(name) for name in ask.of(cube)]
        subquery = select(subquery.c.cell_id, *sums_of).group_by(subquery.c.cell_id).subquery()
    named = [getattr(cells, name).label(f"by_{name}") for name in ask.by]
    # With one cell per group there is nothing to add up.
    whole = not bucketed and set(ask.by) == set(cube.dimensions)
    starts = [subquery.c.bucket_us] if bucketed else []
    query = select(
        *starts,
        *named,
        *(
            subquery.c[name] if whole else total(subquery.c[name]).label(name)
            for name in ask.of(cube)
        ),
    ).join(cells, cells.id == subquery.c.cell_id)
    grouped = [*(of.name for of in starts), *(of.name for of in named)]
    if grouped and not whole:
        query = query.group_by(*grouped)
    return _collect_sums(rows(connection, query), len(ask.by), bucketed=bucketed)


def _of_rows(
    connection: Connection,
    cube: RollupCube,
    scope: Scope,
    ask: SumQuery,
    which: ColumnElement[bool],
) -> Sums:
    named = [cube.dimensions[name].label(f"by_{name}") for name in ask.by]
    starts = [] if ask.bucket_us is None else [
        (AttemptRow.opened_us - AttemptRow.opened_us % ask.bucket_us).label("bucket_us")
    ]  # fmt: skip
    columns = [*starts, *named, *(cube.measures[name] for name in ask.of(cube))]
    query = cube.join_compared(select(*columns).where(which, *ask.where(_Columns(cube))))
    grouped = [*starts, *named]
    if grouped:
        query = query.group_by(*(column.name for column in grouped))
    listed = rows(connection, scope.narrow(query))
    return _collect_sums(listed, len(ask.by), bucketed=ask.bucket_us is not None)


class _Columns:
    """The dimensions of a cube as columns of attempt rows."""

    def __init__(self, cube: RollupCube) -> None:
        self._dimensions = cube.dimensions

    def __getattr__(self, name: str) -> Any:
        return self._dimensions[name]


def _collect_sums(listed: list[tuple[Any, ...]], places: int, *, bucketed: bool) -> Sums:
    """Return the rows of a grouped statement as a mapping; each key occurs once."""
    if bucketed:
        return {row[: places + 1]: list(row[places + 1 :]) for row in listed}
    return {(0, *row[:places]): list(row[places:]) for row in listed}


def merge(into: Sums, more: Sums) -> None:
    for key, values in more.items():
        before = into.get(key)
        if before is None:
            into[key] = values
        else:
            for place, value in enumerate(values):
                before[place] += value


def _subtract_sums(found: Sums, more: Sums) -> None:
    """Subtract sums outside of the span and remove groups that become empty."""
    for key, values in more.items():
        left = [number - value for number, value in zip(found[key], values, strict=True)]
        if any(left):
            found[key] = left
        else:
            del found[key]


def _version(connection: Connection) -> int | None:
    return connection.execute(select(RollupPositionRow.version)).scalar()


def _cut(start_us: int, end_us: int) -> tuple[Span, ...]:
    return ((start_us, end_us),) if start_us < end_us else ()
