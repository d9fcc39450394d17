"""Reads that add attempts up: spend, tokens, spills and SLO in one cube; comparators; marks.

`cells` is the read that covers every attempt of a span: all pages add its cells up, so that their
figures agree with one another. Whether sums or rows answer is `queries_rollups`' to say.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, func, or_

from ledger.capacity import Traffic
from ledger.queries_rollups import sums
from ledger.queries_scope import EVER, Scope, of_kinds, spilled
from ledger.rollup import ANSWERED, ATTEMPTS, COMPARED, LIMB

CONVERSATION = frozenset({"chat", "completion"})  # kinds whose answers are decoded for a client


@dataclass(frozen=True, slots=True)
class Cell:
    """Attempts of one bucket that agree in everything that a page may group by."""

    start_us: int
    team: str
    model: str
    backend: str  # own | api
    target: str
    pool: str | None
    spill_reason: str | None
    status: str | None  # records.Status; `None`: not settled
    slo_met: bool | None
    simulated: bool
    attempts: int
    input_tokens: int  # cached and written to a cache included
    cached_tokens: int
    output_tokens: int
    engine_us: int
    cost_pusd: int  # priced attempts only
    unpriced: int  # settled, and no price was known
    kind: str = "chat"  # router.Kind

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def answered(self) -> bool:
        return self.status in ANSWERED

    @property
    def avoids(self) -> bool:
        """Served by an own engine inside the SLO, or where none was promised."""
        return self.backend == "own" and self.answered and self.slo_met is not False


@dataclass(frozen=True, slots=True)
class Comparison:
    """What one comparator would have charged for what own engines served of a model."""

    model: str
    pool: str
    position: int  # 0: the substitute; others: the same weights elsewhere
    comparator: str
    tokens_in_slo: int
    output_tokens_in_slo: int
    avoided_pusd: int  # of requests inside the SLO (or without one)
    missed_pusd: int  # of requests outside it: shown, never counted as avoided
    scaled: bool  # token counts were scaled by a measured ratio


@dataclass(frozen=True, slots=True)
class Overflowed:
    """What spilled of a model for lack of capacity, and its price: paid, or at a comparator."""

    model: str
    comparator: str | None  # `None`: what was really paid
    position: int | None
    tokens: int
    output_tokens: int
    pusd: int


@dataclass(frozen=True, slots=True)
class Flagged:
    """Attempts of one target that carry the same mark; they are in every sum all the same."""

    flag: str  # `orm.Attempt.flag`
    target: str
    attempts: int
    cost_pusd: int


_CELL = (
    "team_id", "model", "backend", "target", "pool", "spill_reason", "status", "slo_met",
    "simulated", "kind",
)  # fmt: skip


def cells(connection: Connection, scope: Scope, *, bucket_us: int) -> list[Cell]:
    """Everything that was attempted in the scope, added up by bucket and dimension."""
    found = sums(connection, ATTEMPTS, scope, by=_CELL, bucket_us=bucket_us)
    return [
        Cell(*(*key[:-1], *one[:5], one[5] * LIMB + one[6], one[7], key[-1]))
        for key, one in found.items()
    ]


def comparisons(connection: Connection, scope: Scope) -> list[Comparison]:
    """Per comparator, what the requests that own engines answered would have cost there."""
    by = ("model", "pool", "position", "comparator", "status", "slo_met")
    found = sums(
        connection, COMPARED, scope, by=by, bucket_us=None, where=lambda of: [of.backend == "own"]
    )
    places: dict[tuple[Any, ...], list[int]] = {}
    for (_, *place, status, slo_met), (tokens, output, scaled, high, low) in found.items():
        one = places.setdefault(tuple(place), [0, 0, 0, 0, 0])
        pusd = high * LIMB + low
        inside = status in ANSWERED and slo_met is not False
        more = (tokens, output, pusd, 0, scaled) if inside else (0, 0, 0, pusd, scaled)
        for number, value in enumerate(more):
            one[number] += value
    ordered = sorted(places.items(), key=lambda one: (one[0][0], one[0][1] or "", *one[0][2:]))
    return [Comparison(*(*place, *one[:4], one[4] > 0)) for place, one in ordered]


def overflowed(
    connection: Connection,
    scope: Scope,
    *,
    spills: Collection[str],
    kinds: Collection[str] | None = None,
) -> list[Overflowed]:
    """What overflow of these models cost, and would have cost; what has no price is left out."""
    bought = sums(
        connection,
        ATTEMPTS,
        scope,
        by=("model",),
        bucket_us=None,
        where=lambda of: [
            spilled(of, spills),
            of.status.is_not(None),
            func.coalesce(of.flag, "") != "unpriced",
            of_kinds(of, kinds),
        ],
    )
    elsewhere = sums(
        connection,
        COMPARED,
        scope,
        by=("model", "comparator", "position"),
        bucket_us=None,
        where=lambda of: [spilled(of, spills), of.status.in_(ANSWERED), of_kinds(of, kinds)],
    )
    paid = [
        Overflowed(model, None, None, one[1] + one[3], one[3], one[5] * LIMB + one[6])
        for (_, model), one in sorted(bought.items())
    ]
    return paid + [
        Overflowed(*(*key[1:], one[0], one[1], one[3] * LIMB + one[4]))
        for key, one in sorted(elsewhere.items())
    ]


def homes(connection: Connection) -> dict[str, str]:
    """The pool that a model's spills belong to: the one that answers most of its requests.

    One pool for each model, so that no token overflows twice.
    """
    found = sums(
        connection,
        ATTEMPTS,
        EVER,
        by=("model", "pool"),
        bucket_us=None,
        where=lambda of: [of.backend == "own"],
    )
    names = sorted(found, key=lambda key: key[2] or "", reverse=True)
    return {model: pool for _, model, pool in sorted(names, key=lambda key: found[key][0])}


def traffic(
    connection: Connection,
    scope: Scope,
    *,
    pool: str,
    spills: Collection[str],
    kinds: Collection[str] | None = None,
) -> Traffic:
    """The mix of the requests of `load_per_minute`, as the sums that `ledger.capacity` needs."""
    found = sums(
        connection,
        ATTEMPTS,
        scope,
        by=(),
        bucket_us=None,
        where=lambda of: [
            or_(of.pool == pool, spilled(of, spills)),
            of.status.in_(ANSWERED),
            of_kinds(of, kinds),
        ],
    )
    one = next(iter(found.values()), [0] * len(ATTEMPTS.measures))
    return Traffic(one[0], one[1], one[2], one[3], float(one[8]), float(one[9]))


def teams(connection: Connection, scope: Scope) -> list[str]:
    found = sums(connection, ATTEMPTS, scope, by=("team_id",), bucket_us=None)
    return sorted(team for _, team in found)


def flagged(connection: Connection, scope: Scope) -> list[Flagged]:
    """By flag and target, the most frequent first."""
    by, marked = ("flag", "target"), _marked
    found = sums(connection, ATTEMPTS, scope, by=by, bucket_us=None, where=marked)
    lines = [
        Flagged(flag, target, one[0], one[5] * LIMB + one[6])
        for (_, flag, target), one in found.items()
    ]
    return sorted(lines, key=lambda line: (line.flag, -line.attempts, line.target))


def _marked(of: Any) -> list[ColumnElement[bool]]:
    return [of.flag.is_not(None)]
