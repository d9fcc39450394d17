"""Loads of pools by the minute: from packed days and hours, and from rows.

A month of minutes for all teams would be as many rows as attempts; packed by day it is some hundred
rows. All pools are read at once. A minute is an index of a list: a month of a pool is four lists of
43,200 numbers.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, select, union_all

from ledger.economics.cost import TokenBasis
from ledger.fleet.pool_records import PoolLoad
from ledger.orm.tables import AttemptRow, RollupLoadDayRow, RollupLoadHourRow, RollupLoadRow
from ledger.queries.rollups import (
    RollupProgress,
    Span,
    in_spans,
    live_conditions,
    parts_of,
    surplus_conditions,
)
from ledger.spans import DAY_US, HOUR_US, MINUTE_US, Scope, rows
from ledger.sums.minutes import MINUTES_OF_DAY, numbers, spread
from ledger.sums.rollup import MINUTES, loads_of_rows, unpack_columns

NOTHING = PoolLoad(0, (), (), (), (), 0)


class _Of(NamedTuple):
    """Key of a load series: `pool` answered it, or `model` spilled for lack of capacity."""

    pool: str | None
    model: str | None
    kind: str


class _Series(NamedTuple):
    """Load by minute of the span."""

    tokens: list[int]
    good: list[int]
    requests: list[int]


@dataclass(frozen=True, slots=True)
class PoolLoads:
    """The loads of all pools in a span. `start_us` is the start of the first minute."""

    start_us: int
    minutes: int
    series: dict[_Of, _Series]

    def pool_load(
        self, *, pool: str, spills: Collection[str], kinds: Collection[str] | None = None
    ) -> PoolLoad:
        """Return the load of one pool, including the overflow of the models in `spills`.

        `kinds` limits the load to these request kinds (`None`: all), since the load of reranking
        requests cannot be compared with that of chats.
        """
        mine = {
            of: series_item
            for of, series_item in self.series.items()
            if (of.pool == pool or of.model in spills) and (kinds is None or of.kind in kinds)
        }
        requests = self._sum(series.requests for series in mine.values())
        seen = self.minutes - requests.count(0)
        if not seen:
            return NOTHING
        first = next(place for place, count in enumerate(requests) if count)
        last = next(place for place in range(self.minutes, 0, -1) if requests[place - 1])
        over = [series for of, series in mine.items() if of.model in spills]
        served = [series.good for of, series in mine.items() if of.pool == pool]
        return PoolLoad(
            self.start_us + first * MINUTE_US,
            self._sum(series.tokens for series in mine.values())[first:last],
            self._sum(served)[first:last],
            self._sum(series.tokens for series in over)[first:last],
            self._sum(series.requests for series in over)[first:last],
            seen,
        )

    def _sum(self, columns: Iterable[list[int]]) -> list[int]:
        first, *more = [*columns] or [[0] * self.minutes]
        return reduce(lambda items, other: list(map(add, items, other)), more, first)


def loads(
    connection: Connection, scope: Scope, here: RollupProgress | None, *, basis: TokenBasis
) -> PoolLoads:
    """Read the loads of all pools. Call this inside `read_consistently`."""
    start_us = scope.start_us - scope.start_us % MINUTE_US
    found = _LoadSums(PoolLoads(start_us, -(-(scope.end_us - start_us) // MINUTE_US), {}), basis)
    parts = parts_of(scope, here, HOUR_US)
    if here is None or parts is None:
        _add_rows(
            connection,
            scope,
            found,
            in_spans(AttemptRow.opened_us, ((scope.start_us, scope.end_us),)),
        )
        return found.trim_loads()
    ((_, (whole,)),) = parts.tiers
    _add_sums(connection, scope, found, whole, here.packed_us)
    for rest in live_conditions(parts, here):
        _add_rows(connection, scope, found, rest)
    for more in surplus_conditions(parts, here):  # only of the minute that the span's end cuts
        cut = replace(scope, end_us=-(-scope.end_us // MINUTE_US) * MINUTE_US)
        _add_rows(connection, cut, found, more, sign=-1)
    return found.trim_loads()


class _LoadSums:
    """Sums of a load by minute, on one token basis."""

    def __init__(self, loads: PoolLoads, basis: TokenBasis) -> None:
        self.loads = loads
        self._room = loads.minutes + MINUTES  # the last hour may have minutes beyond the span
        self._tokens, self._good = (1, 3) if basis is TokenBasis.OUTPUT else (0, 2)

    @property
    def columns(self) -> tuple[Any, ...]:
        """Return the columns to read from a row of a day: minutes, and the values of a series."""
        day = RollupLoadDayRow
        tokens = (day.tokens, day.output_tokens, day.good_tokens, day.good_output_tokens)
        return day.minutes, tokens[self._tokens], tokens[self._good], day.requests

    def trim_loads(self) -> PoolLoads:
        for series in self.loads.series.values():
            for column in series:
                del column[self.loads.minutes :]
        return self.loads

    def minute(self, of: _Of, minute_us: int, load: Sequence[int]) -> None:
        series, at = self._series(of), (minute_us - self.loads.start_us) // MINUTE_US
        series.tokens[at] += load[self._tokens]
        series.good[at] += load[self._good]
        series.requests[at] += load[4]

    def hour(self, of: _Of, start_us: int, packed: bytes) -> None:
        """Read one packed hour of a series. Each hour is packed once, and read before any row."""
        series, at = self._series(of), (start_us - self.loads.start_us) // MINUTE_US
        places, *columns = unpack_columns(packed)
        wanted = (columns[self._tokens], columns[self._good], columns[4])
        if len(places) == MINUTES:
            whole = slice(at, at + MINUTES)
            for into, column in zip(series, wanted, strict=True):
                into[whole] = column
            return
        for into, column in zip(series, wanted, strict=True):
            for place, value in zip(places, column, strict=True):
                into[at + place] = value

    def day(self, of: _Of, start_us: int, packed: Sequence[bytes]) -> None:
        """Read one packed day of a series; minutes without load are zeros."""
        series, at = self._series(of), (start_us - self.loads.start_us) // MINUTE_US
        places = numbers(packed[0])
        for into, column in zip(series, packed[1:], strict=True):
            into[at : at + MINUTES_OF_DAY] = spread(places, column)

    def _series(self, of: _Of) -> _Series:
        series = self.loads.series.get(of)
        if series is None:
            series = _Series(*([0] * self._room for _ in range(3)))
            self.loads.series[of] = series
        return series


def _add_rows(
    connection: Connection,
    scope: Scope,
    found: _LoadSums,
    which: ColumnElement[bool],
    sign: int = 1,
) -> None:
    query = scope.narrow(loads_of_rows().where(which))
    for minute_us, _, pool, model, kind, *load in rows(connection, query):
        found.minute(_Of(pool, model, kind), minute_us, [sign * item for item in load])


def _add_sums(
    connection: Connection, scope: Scope, found: _LoadSums, span: Span, packed_us: int
) -> None:
    """Add packed days as far as they exist, and packed hours for the rest."""
    start, end = span
    hours: tuple[Span, ...] = (span,)
    dawn, dusk = -(-start // DAY_US) * DAY_US, min(end, packed_us) // DAY_US * DAY_US
    if dawn < dusk:
        hours = tuple(pair for pair in ((start, dawn), (dusk, end)) if pair[0] < pair[1])
        listed = _read_packed(connection, scope, RollupLoadDayRow, found.columns, ((dawn, dusk),))
        for pool, model, kind, start_us, *columns in listed:
            found.day(_Of(pool, model, kind), start_us, columns)
    if hours:
        listed = _read_packed(
            connection, scope, RollupLoadHourRow, (RollupLoadHourRow.minutes,), hours
        )
        for pool, model, kind, start_us, packed in listed:
            found.hour(_Of(pool, model, kind), start_us, packed)


def _read_packed(
    connection: Connection,
    scope: Scope,
    table: Any,
    columns: tuple[Any, ...],
    spans: tuple[Span, ...],
) -> list[tuple[Any, ...]]:
    load = RollupLoadRow
    whose = load.team_id.is_(None) if scope.team is None else load.team_id == scope.team
    pieces = [
        # One statement a span: for two spans at once PostgreSQL would read the hours of all time.
        select(load.pool, load.model, load.kind, table.start_us, *columns)
        .join(table, table.cell_id == load.id)
        .where(whose, in_spans(table.start_us, (span,)))
        for span in spans
    ]
    return rows(connection, union_all(*pieces) if len(pieces) > 1 else pieces[0])
