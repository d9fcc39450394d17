"""Sums of attempts: spend, tokens, spills and SLO in one cube; flagged attempts.

`cells` covers every attempt of a span by bucket. What a first page needs of the whole span is read
once by `facts`. `rollups` decides whether sums or rows are read.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, select

from ledger.orm.tables import AttemptRow
from ledger.queries.rollups import SumQuery, sums
from ledger.spans import Scope
from ledger.sums.rollup import ANSWERED, ATTEMPTS, CANCELLED, LIMB


@dataclass(frozen=True, slots=True)
class AttemptCell:
    """Attempts of one bucket with equal values in every dimension that a page may group by."""

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
    kind: str = "chat"  # router.request_kinds.RequestKind

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    @property
    def provider(self) -> str | None:
        """Return an API's provider from its target `PROVIDER/MODEL`, `None` for own engines."""
        return self.target.partition("/")[0] if self.backend == "api" else None

    @property
    def is_answered(self) -> bool:
        return self.status in ANSWERED

    @property
    def is_cancelled(self) -> bool:
        """Return whether the client disconnected before the end. Output up to then is counted."""
        return self.status == CANCELLED

    @property
    def avoids(self) -> bool:
        """Return whether an own engine answered inside the SLO, or without an SLO."""
        return self.backend == "own" and self.is_answered and self.slo_met is not False


@dataclass(frozen=True, slots=True)
class ComparatorCost:
    """Charge of one comparator for the answers of own engines, by model and pool."""

    model: str
    pool: str
    position: int  # 0: the substitute; others: the same weights elsewhere
    comparator: str
    tokens_in_slo: int
    output_tokens_in_slo: int
    avoided_pusd: int  # of requests inside the SLO (or without one)
    missed_pusd: int  # of requests outside it: shown, never counted as avoided
    scaled: bool  # token counts were scaled by a measured ratio
    cancelled_pusd: int = 0  # part of the avoided cost: the client disconnected


@dataclass(frozen=True, slots=True)
class OverflowCost:
    """Requests of a model that spilled for lack of capacity, at the paid or another price."""

    model: str
    comparator: str | None  # `None`: the paid price
    position: int | None
    tokens: int
    output_tokens: int
    pusd: int


@dataclass(frozen=True, slots=True)
class FlaggedAttempts:
    """Attempts of one target with the same flag. Every sum includes them."""

    flag: str  # `orm.Attempt.flag`
    target: str
    attempts: int
    cost_pusd: int


@dataclass(frozen=True, slots=True)
class SpendPoint:
    """Cost of the priced attempts of one group in one bucket, in pico-USD."""

    start_us: int
    name: str
    cost_pusd: int


_GROUPS = {"team": "team_id", "model": "model", "backend": "target"}
_CELL = (
    "team_id", "model", "backend", "target", "pool", "spill_reason", "status", "slo_met",
    "simulated", "kind",
)  # fmt: skip
_FIGURES = (
    "attempts", "input_tokens", "cached_tokens", "output_tokens", "engine_us", "cost_high",
    "cost_low", "unpriced",
)  # fmt: skip


def cells(connection: Connection, scope: Scope, *, bucket_us: int) -> list[AttemptCell]:
    """Return all attempts of the scope, added up by bucket and dimension."""
    found = sums(connection, ATTEMPTS, scope, SumQuery(_CELL, bucket_us, measures=_FIGURES))
    return [_cell(key, figures) for key, figures in found.items()]


def _cell(key: tuple[Any, ...], figures: Sequence[int]) -> AttemptCell:
    start_us, team, model, backend, target, pool, spill, status, slo_met, simulated, kind = key
    attempts, inputs, cached, outputs, engine_us, cost_high, cost_low, unpriced = figures
    return AttemptCell(
        start_us=start_us,
        team=team,
        model=model,
        backend=backend,
        target=target,
        pool=pool,
        spill_reason=spill,
        status=status,
        slo_met=slo_met,
        simulated=simulated,
        attempts=attempts,
        input_tokens=inputs,
        cached_tokens=cached,
        output_tokens=outputs,
        engine_us=engine_us,
        cost_pusd=cost_high * LIMB + cost_low,
        unpriced=unpriced,
        kind=kind,
    )


def spent(connection: Connection, scope: Scope, *, by: str, bucket_us: int) -> list[SpendPoint]:
    """Return the spend by bucket and `team`, `model` or `backend`, in time order."""
    ask = SumQuery((_GROUPS[by],), bucket_us, measures=("attempts", "cost_high", "cost_low"))
    found = sums(connection, ATTEMPTS, scope, ask)
    return [
        SpendPoint(start_us=start_us, name=name, cost_pusd=high * LIMB + low)
        for (start_us, name), (_, high, low) in sorted(found.items())
    ]


def senders_of_bills(connection: Connection, targets: Iterable[str]) -> list[str]:
    """Return the providers that bill for these API targets, each once, in order.

    The latest attempt at a target tells its provider, as one account may have several target names.
    If all attempts were deleted, the target's name tells it.
    """
    row, senders = AttemptRow, []
    for target in targets:
        latest = select(row.provider).where(row.target == target).order_by(row.opened_us.desc())
        known = connection.execute(latest.limit(1)).scalar()
        senders.append(target.partition("/")[0] if known is None else known)
    return sorted(set(senders))


def teams(connection: Connection, scope: Scope) -> list[str]:
    found = sums(connection, ATTEMPTS, scope, SumQuery(("team_id",), measures=("attempts",)))
    return sorted(team for _, team in found)
