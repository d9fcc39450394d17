"""All attempts of a span, added up once, and the figures that pages derive from them.

A page needs many figures of the same attempts: spend, the cost of own engines' answers elsewhere,
overflow, the mix of a pool's traffic. `facts` reads the sums at the finest grain needed, with the
span as one bucket, so that each figure adds up about a thousand groups. `moments` reads sums over
time at the grain of charts.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import Connection

from ledger.fleet.capacity import TrafficSums
from ledger.fleet.overflow import LACK_OF_CAPACITY
from ledger.queries.attempts import AttemptCell, ComparatorCost, FlaggedAttempts, OverflowCost
from ledger.queries.rollups import RollupProgress, SumQuery, Sums, read_consistently, sums, sums_at
from ledger.spans import EVER, Scope
from ledger.sums.rollup import ANSWERED, ATTEMPTS, CANCELLED, COMPARED, LIMB


class AttemptGroup(NamedTuple):
    """Sums of attempts with equal values in every dimension that a page may group by."""

    team: str
    model: str
    backend: str
    target: str
    pool: str | None
    spill_reason: str | None
    status: str | None
    slo_met: bool | None
    simulated: bool
    kind: str
    flag: str | None
    attempts: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    engine_us: int
    cost_pusd: int
    unpriced: int
    output_prompt: int
    output_square: int


class ComparedGroup(NamedTuple):
    """Sums of attempts with equal dimensions for comparisons, at one comparator."""

    team_id: str
    model: str
    backend: str
    pool: str | None
    spill_reason: str | None
    status: str | None
    slo_met: bool | None
    kind: str
    position: int
    comparator: str
    tokens: int
    output_tokens: int
    scaled: int
    cost_pusd: int


class BucketSums(NamedTuple):
    """Sums of attempts of one bucket at the grain of charts; see `AttemptCell.avoids`."""

    start_us: int
    backend: str
    spilled: bool
    avoids: bool
    attempts: int
    tokens: int
    cost_pusd: int


@dataclass(frozen=True, slots=True)
class SpanFacts:
    """Sums of a span. `attempts` cover all teams, because all traffic shows a pool's capacity.

    `compared`, and all results but those of `traffic`, cover the scope's team, if it names one.
    """

    team: str | None
    attempts: tuple[AttemptGroup, ...]
    compared: tuple[ComparedGroup, ...]

    @property
    def mine(self) -> Iterable[AttemptGroup]:
        return (attempt for attempt in self.attempts if self.team in (None, attempt.team))

    def of(self, team: str | None) -> "SpanFacts":
        """Return the facts of one team, from facts of all teams or of that team."""
        if team == self.team:
            return self
        compared = tuple(group for group in self.compared if group.team_id == team)
        return SpanFacts(team, self.attempts, compared)

    def cells(self) -> list[AttemptCell]:
        found: dict[tuple[Any, ...], list[int]] = {}
        for group in self.mine:
            _plus(found, group[:_FLAG], group[_FLAG + 1 : _FLAG + 8])
        return [AttemptCell(*(0, *key[:-1], *figures, key[-1])) for key, figures in found.items()]

    def comparisons(self) -> list[ComparatorCost]:
        """Return for each comparator its charge for the requests that own engines answered."""
        found: dict[tuple[Any, ...], list[int]] = {}
        for group in self.compared:
            if group.backend == "own":
                inside = group.status in ANSWERED and group.slo_met is not False
                gone = group.cost_pusd if group.status == CANCELLED else 0
                good = (group.tokens, group.output_tokens, group.cost_pusd, 0, gone)
                figures = good if inside else (0, 0, 0, group.cost_pusd, 0)
                place = (group.model, group.pool, group.position, group.comparator)
                _plus(found, place, (*figures, group.scaled))
        ordered = sorted(
            found.items(), key=lambda pair: (pair[0][0], pair[0][1] or "", *pair[0][2:])
        )
        return [
            ComparatorCost(*(*place, *items[:4], items[5] > 0, items[4]))
            for place, items in ordered
        ]

    def overflowed(
        self, *, spills: Collection[str], kinds: Collection[str] | None = None
    ) -> list[OverflowCost]:
        """Return the overflow of these models at the paid price and at each comparator's price."""
        bought: dict[tuple[Any, ...], list[int]] = {}
        for group in self.mine:
            known = group.status is not None and group.flag != "unpriced"
            if known and _of_kinds(group, kinds) and _is_spilled(group, spills):
                figures = (
                    group.input_tokens + group.output_tokens,
                    group.output_tokens,
                    group.cost_pusd,
                )
                _plus(bought, (group.model,), figures)
        elsewhere: dict[tuple[Any, ...], list[int]] = {}
        for at in self.compared:
            if at.status in ANSWERED and _of_kinds(at, kinds) and _is_spilled(at, spills):
                figures = (at.tokens, at.output_tokens, at.cost_pusd)
                _plus(elsewhere, (at.model, at.comparator, at.position), figures)
        paid = [
            OverflowCost(model, None, None, *items) for (model,), items in sorted(bought.items())
        ]
        return paid + [OverflowCost(*place, *items) for place, items in sorted(elsewhere.items())]

    def traffic(
        self, *, pool: str, spills: Collection[str], kinds: Collection[str] | None = None
    ) -> TrafficSums:
        """Return the mix of all teams' requests of a pool's load, as sums for the capacity."""
        found = [
            attempt
            for attempt in self.attempts
            if attempt.status in ANSWERED
            and (attempt.pool == pool or _is_spilled(attempt, spills))
            and _of_kinds(attempt, kinds)
        ]
        return TrafficSums(
            sum(group.attempts for group in found),
            sum(group.input_tokens for group in found),
            sum(group.cached_tokens for group in found),
            sum(group.output_tokens for group in found),
            float(sum(group.output_prompt for group in found)),
            float(sum(group.output_square for group in found)),
        )


_ATTEMPT = (
    "team_id", "model", "backend", "target", "pool", "spill_reason", "status", "slo_met",
    "simulated", "kind", "flag",
)  # fmt: skip
_COMPARED = tuple(COMPARED.dimensions)
_FLAG = _ATTEMPT.index("flag")
_COST = list(ATTEMPTS.measures).index("cost_high")
_COMPARED_COST = list(COMPARED.measures).index("cost_high")
assert ComparedGroup._fields[: len(_COMPARED)] == _COMPARED


def facts(
    connection: Connection, scope: Scope, here: RollupProgress | None, *, everyone: bool = False
) -> SpanFacts:
    """Read the sums of a span. Call this inside `read_consistently`.

    `everyone`: read the attempts of all teams, which `traffic` needs.
    """
    whole = Scope(scope.start_us, scope.end_us) if everyone else scope
    found = sums_at(connection, ATTEMPTS, whole, SumQuery(_ATTEMPT), here)
    return SpanFacts(
        scope.team,
        tuple(AttemptGroup(*key[1:], *_money(sums, _COST)) for key, sums in found.items()),
        _compared_groups(connection, scope, here),
    )


def _compared_groups(
    connection: Connection, scope: Scope, here: RollupProgress | None
) -> tuple[ComparedGroup, ...]:
    found = sums_at(connection, COMPARED, scope, SumQuery(_COMPARED), here)
    return tuple(
        ComparedGroup(*key[1:], *_money(sums, _COMPARED_COST)) for key, sums in found.items()
    )


_CHARTS = SumQuery(
    ("backend", "spill_reason", "status", "slo_met"),
    measures=("attempts", "input_tokens", "output_tokens", "cost_high", "cost_low"),
)


def moments(
    connection: Connection, scope: Scope, here: RollupProgress | None, *, bucket_us: int
) -> list[BucketSums]:
    """Return the sums by bucket in time order. Call this inside `read_consistently`."""
    ask = SumQuery(_CHARTS.by, bucket_us, measures=_CHARTS.measures)
    found: dict[tuple[Any, ...], list[int]] = {}
    for (start_us, backend, reason, status, slo_met), items in sums_at(
        connection, ATTEMPTS, scope, ask, here
    ).items():
        attempts, given, answered, high, low = items
        avoids = backend == "own" and status in ANSWERED and slo_met is not False
        key = (start_us, backend, reason is not None, avoids)
        _plus(found, key, (attempts, given + answered, high * LIMB + low))
    return [BucketSums(*key, *found[key]) for key in sorted(found)]


def comparisons(connection: Connection, scope: Scope) -> list[ComparatorCost]:
    return SpanFacts(
        scope.team, (), read_consistently(connection, partial(_compared_groups, connection, scope))
    ).comparisons()


def flagged(connection: Connection, scope: Scope) -> list[FlaggedAttempts]:
    """Return flagged attempts by flag and target, most frequent first."""
    ask = SumQuery(
        ("flag", "target"),
        where=lambda of: [of.flag.is_not(None)],
        measures=("attempts", "cost_high", "cost_low"),
    )
    lines = [
        FlaggedAttempts(flag, target, attempts, high * LIMB + low)
        for (_, flag, target), (attempts, high, low) in sums(
            connection, ATTEMPTS, scope, ask
        ).items()
    ]
    return sorted(lines, key=lambda line: (line.flag, -line.attempts, line.target))


def home_pools(connection: Connection, here: RollupProgress | None) -> dict[str, str]:
    """Return for each model the pool to which its spills belong: the one with most answers.

    Each model has one pool, so that no token overflows twice. All recorded time counts. Call this
    inside `read_consistently`.
    """
    own = SumQuery(
        ("model", "pool"), where=lambda of: [of.backend == "own"], measures=("attempts",)
    )
    found: Sums = sums_at(connection, ATTEMPTS, EVER, own, here)
    names = sorted(found, key=lambda key: key[2] or "", reverse=True)
    return {model: pool for _, model, pool in sorted(names, key=lambda key: found[key][0])}


def _money(figures: list[int], place: int) -> list[int]:
    """Combine the high and low half of an amount at `place` to one number."""
    amount = figures[place] * LIMB + figures[place + 1]
    return [*figures[:place], amount, *figures[place + 2 :]]


def _plus(found: dict[tuple[Any, ...], list[int]], key: tuple[Any, ...], more: Any) -> None:
    before = found.get(key)
    if before is None:
        found[key] = list(more)
    else:
        for place, value in enumerate(more):
            before[place] += value


def _is_spilled(attempt_group: AttemptGroup | ComparedGroup, models: Collection[str]) -> bool:
    """Return whether an API answered for one of these models for lack of own capacity."""
    return (
        attempt_group.backend == "api"
        and attempt_group.spill_reason in LACK_OF_CAPACITY
        and attempt_group.model in models
    )


def _of_kinds(attempt_group: AttemptGroup | ComparedGroup, kinds: Collection[str] | None) -> bool:
    return kinds is None or attempt_group.kind in kinds
