"""What was asked of pools, minute by minute: from the hours that are packed, and rows beside them.

A month of minutes for everyone and each team would be as many rows as attempts; packed by hour
they are some hundred. All pools are read at once, and a minute is a place in a list: a month of a
pool is four lists of 43,200 numbers, and the figures that are made of them walk these.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, select

from ledger.economics import TokenBasis
from ledger.orm import Attempt, RollupLoad, RollupLoadHour
from ledger.queries_rollups import Rolled, inside, live, parts_of
from ledger.queries_scope import HOUR_US, MINUTE_US, Scope, rows
from ledger.rollup import MINUTES, loads_of_rows, unpacked


@dataclass(frozen=True, slots=True)
class Load:
    """What was asked of a pool, by minute from `start_us` on, quiet ones as zeros.

    `asked` is all that own engines answered and what spilled; `served` of it inside the SLO, or
    where none was promised; `spilled` for lack of room. Tokens are of one basis. `seen` are the
    minutes in which anything was asked; lists begin with the first of them and end with the last.
    """

    start_us: int
    asked: Sequence[int]
    served: Sequence[int]
    spilled: Sequence[int]
    spilled_requests: Sequence[int]
    seen: int


NOTHING = Load(0, (), (), (), (), 0)


class _Of(NamedTuple):
    """Whose a series is: `pool` answered it; `model` spilled for lack of room."""

    pool: str | None
    model: str | None
    kind: str


class _Series(NamedTuple):
    """By minute of the span."""

    tokens: list[int]
    good: list[int]
    requests: list[int]


@dataclass(frozen=True, slots=True)
class Loads:
    """The loads of all pools in a span; `start_us` is that of the first minute."""

    start_us: int
    minutes: int
    series: dict[_Of, _Series]

    def of(
        self, *, pool: str, spills: Collection[str], kinds: Collection[str] | None = None
    ) -> Load:
        """One pool's; `spills` are the models whose overflow is this pool's.

        Of these `kinds` only (`None`: of all): a document that is ranked is no prompt of a chat.
        """
        mine = {
            of: one
            for of, one in self.series.items()
            if (of.pool == pool or of.model in spills) and (kinds is None or of.kind in kinds)
        }
        requests = self._sum(one.requests for one in mine.values())
        seen = self.minutes - requests.count(0)
        if not seen:
            return NOTHING
        first = next(place for place, count in enumerate(requests) if count)
        last = next(place for place in range(self.minutes, 0, -1) if requests[place - 1])
        over = [one for of, one in mine.items() if of.model in spills]
        served = [one.good for of, one in mine.items() if of.pool == pool]
        return Load(
            self.start_us + first * MINUTE_US,
            self._sum(one.tokens for one in mine.values())[first:last],
            self._sum(served)[first:last],
            self._sum(one.tokens for one in over)[first:last],
            self._sum(one.requests for one in over)[first:last],
            seen,
        )

    def _sum(self, columns: Iterable[list[int]]) -> list[int]:
        first, *more = [*columns] or [[0] * self.minutes]
        return reduce(lambda one, other: list(map(add, one, other)), more, first)


def loads(connection: Connection, scope: Scope, here: Rolled | None, *, basis: TokenBasis) -> Loads:
    """Inside `settle_on`."""
    start_us = scope.start_us - scope.start_us % MINUTE_US
    found = _Found(Loads(start_us, -(-(scope.end_us - start_us) // MINUTE_US), {}), basis)
    parts = parts_of(scope, here, HOUR_US)
    if here is None or parts is None:
        _add_rows(connection, scope, found, inside(Attempt.opened_us, (
            (scope.start_us, scope.end_us),
        )))  # fmt: skip
    else:
        _add_hours(connection, scope, found, parts.whole)
        for rest in live(parts, here):
            _add_rows(connection, scope, found, rest)
    return found.loads


class _Found:
    """Adds up minutes; of a load's figures those of one basis."""

    def __init__(self, loads: Loads, basis: TokenBasis) -> None:
        self.loads = loads
        self._tokens, self._good = (1, 3) if basis is TokenBasis.OUTPUT else (0, 2)

    def minute(self, of: _Of, minute_us: int, load: Sequence[int]) -> None:
        series, at = self._series(of), (minute_us - self.loads.start_us) // MINUTE_US
        series.tokens[at] += load[self._tokens]
        series.good[at] += load[self._good]
        series.requests[at] += load[4]

    def hour(self, of: _Of, start_us: int, packed: bytes) -> None:
        """Each hour of a series is packed once, and read before any row."""
        series, at = self._series(of), (start_us - self.loads.start_us) // MINUTE_US
        places, *columns = unpacked(packed)
        wanted = (columns[self._tokens], columns[self._good], columns[4])
        if len(places) == MINUTES:
            whole = slice(at, at + MINUTES)
            for into, column in zip(series, wanted, strict=True):
                into[whole] = column
            return
        for into, column in zip(series, wanted, strict=True):
            for place, value in zip(places, column, strict=True):
                into[at + place] = value

    def _series(self, of: _Of) -> _Series:
        series = self.loads.series.get(of)
        if series is None:
            series = _Series(*([0] * self.loads.minutes for _ in range(3)))
            self.loads.series[of] = series
        return series


def _add_rows(
    connection: Connection, scope: Scope, found: _Found, which: ColumnElement[bool]
) -> None:
    query = scope.narrow(loads_of_rows().where(which))
    for minute_us, _, pool, model, kind, *load in rows(connection, query):
        found.minute(_Of(pool, model, kind), minute_us, load)


def _add_hours(
    connection: Connection, scope: Scope, found: _Found, spans: tuple[tuple[int, int], ...]
) -> None:
    query = (
        select(
            RollupLoad.pool, RollupLoad.model, RollupLoad.kind,
            RollupLoadHour.start_us, RollupLoadHour.minutes,
        )
        .join(RollupLoadHour, RollupLoadHour.cell_id == RollupLoad.id)
        .where(
            RollupLoad.team_id.is_(None)
            if scope.team is None
            else RollupLoad.team_id == scope.team,
            inside(RollupLoadHour.start_us, spans),
        )
    )  # fmt: skip
    for pool, model, kind, start_us, packed in rows(connection, query):
        found.hour(_Of(pool, model, kind), start_us, packed)
