"""Reads that add attempts up: spend, tokens, reasons and SLO in one cube; comparators; load.

`cells` is the statement that walks every attempt of a span: all pages add its cells up, so that
their figures agree with one another.
"""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import (
    ColumnElement,
    Connection,
    Double,
    and_,
    case,
    cast,
    func,
    null,
    or_,
    select,
    true,
)

from ledger.capacity import Traffic
from ledger.orm import Attempt, ComparedCost, exact_sum
from ledger.overflow import LACK_OF_CAPACITY
from ledger.queries_scope import INPUT_TOKENS, MINUTE_US, OUTPUT_TOKENS, Scope, rows, total

ANSWERED = ("finished", "client_gone")  # a client got tokens
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
    reason: str
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
class Minute:
    """What was asked of a pool in one minute: served inside the SLO, spilled for lack of room.

    `asked` is all that own engines answered and what spilled.
    """

    start_us: int
    asked_tokens: int
    asked_output_tokens: int
    served_tokens: int
    served_output_tokens: int
    spilled_tokens: int
    spilled_output_tokens: int
    spilled_requests: int


def cells(connection: Connection, scope: Scope, *, bucket_us: int) -> list[Cell]:
    """Everything that was attempted in the scope, added up by bucket and dimension."""
    start = (Attempt.opened_us - Attempt.opened_us % bucket_us).label("start_us")
    dimensions = (
        Attempt.team_id,
        Attempt.model,
        Attempt.backend,
        Attempt.target,
        Attempt.pool,
        Attempt.reason,
        Attempt.spill_reason,
        Attempt.status,
        Attempt.slo_met,
        Attempt.simulated,
    )
    settled = Attempt.settled_us.is_not(None)
    statement = select(
        start,
        *dimensions,
        func.count(),
        total(INPUT_TOKENS),
        total(Attempt.cached_tokens),
        total(OUTPUT_TOKENS),
        total(Attempt.engine_us),
        exact_sum(Attempt.cost_pusd),
        total(case((and_(settled, Attempt.cost_pusd.is_(None)), 1), else_=0)),
        Attempt.kind,
    ).group_by("start_us", *dimensions, Attempt.kind)
    found = rows(connection, scope.narrow(statement))
    return [Cell(*row) for row in found]


def comparisons(connection: Connection, scope: Scope) -> list[Comparison]:
    """Per comparator, what the requests that own engines answered would have cost there."""
    inside = and_(Attempt.status.in_(ANSWERED), Attempt.slo_met.is_not(False))
    statement = (
        select(
            Attempt.model,
            Attempt.pool,
            ComparedCost.position,
            ComparedCost.comparator,
            total(case((inside, INPUT_TOKENS + OUTPUT_TOKENS), else_=0)),
            total(case((inside, OUTPUT_TOKENS), else_=0)),
            exact_sum(case((inside, ComparedCost.cost_pusd), else_=0)),
            exact_sum(case((inside, 0), else_=ComparedCost.cost_pusd)),
            total(case((ComparedCost.ratio_ppm != 1_000_000, 1), else_=0)) > 0,
        )
        .join(ComparedCost, ComparedCost.attempt_id == Attempt.attempt_id)
        .where(Attempt.backend == "own")
        .group_by(Attempt.model, Attempt.pool, ComparedCost.position, ComparedCost.comparator)
        .order_by(Attempt.model, Attempt.pool, ComparedCost.position, ComparedCost.comparator)
    )
    found = rows(connection, scope.narrow(statement))
    return [Comparison(*row) for row in found]


def overflowed(
    connection: Connection,
    scope: Scope,
    *,
    spills: Collection[str],
    kinds: Collection[str] | None = None,
) -> list[Overflowed]:
    """What overflow of these models cost, and would have cost; what has no price is left out."""
    tokens = (total(INPUT_TOKENS + OUTPUT_TOKENS), total(OUTPUT_TOKENS))
    bought = (
        select(Attempt.model, null(), null(), *tokens, exact_sum(Attempt.cost_pusd))
        .where(_spilled(spills), Attempt.cost_pusd.is_not(None), _of(kinds))
        .group_by(Attempt.model)
        .order_by(Attempt.model)
    )
    by = (Attempt.model, ComparedCost.comparator, ComparedCost.position)
    elsewhere = (
        select(*by, *tokens, exact_sum(ComparedCost.cost_pusd))
        .join(ComparedCost, ComparedCost.attempt_id == Attempt.attempt_id)
        .where(_spilled(spills), Attempt.status.in_(ANSWERED), _of(kinds))
        .group_by(*by)
        .order_by(*by)
    )
    found = [row for one in (bought, elsewhere) for row in rows(connection, scope.narrow(one))]
    return [Overflowed(*row) for row in found]


def homes(connection: Connection) -> dict[str, str]:
    """The pool that a model's spills belong to: the one that answers most of its requests.

    One pool for each model, so that no token overflows twice.
    """
    statement = (
        select(Attempt.model, Attempt.pool, func.count())
        .where(Attempt.backend == "own")
        .group_by(Attempt.model, Attempt.pool)
        .order_by(func.count(), Attempt.pool.desc())
    )
    return {model: pool for model, pool, _ in rows(connection, statement)}


def load_per_minute(
    connection: Connection,
    scope: Scope,
    *,
    pool: str,
    spills: Collection[str],
    kinds: Collection[str] | None = None,
) -> list[Minute]:
    """Tokens asked of a pool, by minute; `spills` are the models whose overflow is this pool's.

    Of these `kinds` only (`None`: of all): a document that is ranked is no prompt of a chat.
    """
    minute = (Attempt.opened_us - Attempt.opened_us % MINUTE_US).label("minute_us")
    good = and_(Attempt.pool == pool, Attempt.slo_met.is_not(False))
    spilled = _spilled(spills)
    statement = (
        select(
            minute,
            total(INPUT_TOKENS + OUTPUT_TOKENS),
            total(OUTPUT_TOKENS),
            total(case((good, INPUT_TOKENS + OUTPUT_TOKENS), else_=0)),
            total(case((good, OUTPUT_TOKENS), else_=0)),
            total(case((spilled, INPUT_TOKENS + OUTPUT_TOKENS), else_=0)),
            total(case((spilled, OUTPUT_TOKENS), else_=0)),
            total(case((spilled, 1), else_=0)),
        )
        .where(
            or_(Attempt.pool == pool, spilled),
            Attempt.status.in_(ANSWERED),
            _of(kinds),
        )
        .group_by("minute_us")
        .order_by("minute_us")
    )
    return [Minute(*row) for row in rows(connection, scope.narrow(statement))]


def traffic(
    connection: Connection,
    scope: Scope,
    *,
    pool: str,
    spills: Collection[str],
    kinds: Collection[str] | None = None,
) -> Traffic:
    """The mix of the same requests, as the sums that `ledger.capacity` needs."""
    output, prompt = cast(OUTPUT_TOKENS, Double), cast(INPUT_TOKENS, Double)
    statement = select(
        func.count(),
        total(INPUT_TOKENS),
        total(Attempt.cached_tokens),
        total(OUTPUT_TOKENS),
        func.coalesce(func.sum(output * prompt), 0.0),
        func.coalesce(func.sum(output * output), 0.0),
    ).where(
        or_(Attempt.pool == pool, _spilled(spills)),
        Attempt.status.in_(ANSWERED),
        _of(kinds),
    )
    (found,) = rows(connection, scope.narrow(statement))
    return Traffic(*found)


def _spilled(models: Collection[str]) -> ColumnElement[bool]:
    """Attempts of these models that an API answered because own engines lacked capacity."""
    return and_(
        Attempt.backend == "api",
        Attempt.spill_reason.in_(sorted(LACK_OF_CAPACITY)),
        Attempt.model.in_(sorted(models)),
    )


def _of(kinds: Collection[str] | None) -> ColumnElement[bool]:
    return true() if kinds is None else Attempt.kind.in_(sorted(kinds))
