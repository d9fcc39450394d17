"""Reads of single attempts: details, comparators, decision, TTFT predictions.

All reads have a limit: a page shows the latest rows only.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, case, func, select

from ledger.orm.tables import AttemptDecisionRow, AttemptRow, ComparedCostRow, token_column
from ledger.queries.claims import claimed_column
from ledger.spans import INPUT_TOKENS, OUTPUT_TOKENS, Scope, rows
from ledger.sums.rollup import ANSWERED

ROWS_LIMIT = 1_000


@dataclass(frozen=True, slots=True)
class AttemptDetail:
    """One upstream attempt, for the drill-down page."""

    attempt_id: str
    request_id: str
    opened_us: int
    team: str
    key_id: str
    model: str
    target: str
    backend: str
    status: str | None
    reason: str
    spill_reason: str | None
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost_pusd: int | None
    compared_with: str | None
    compared_pusd: int | None
    basis: str | None
    ttft_predicted_us: int | None
    ttft_us: int | None
    duration_us: int | None
    slo_met: bool | None
    flag: str | None
    simulated: bool
    claimed_pusd: int | None = None  # the provider's claimed cost, if above `cost_pusd`


@dataclass(frozen=True, slots=True)
class AttemptComparison:
    comparator: str
    position: int
    ratio_ppm: int
    cost_pusd: int
    cached_tokens: int | None = None  # of the prompt, assumed to be in its provider's cache


@dataclass(frozen=True, slots=True)
class SloAttainment:
    """Answers under one policy with an SLO, and how many of them met it."""

    policy: str
    answers: int
    met: int


@dataclass(frozen=True, slots=True)
class TtftPrediction:
    """Predicted and observed time to first token of one answer."""

    opened_us: int
    target: str
    backend: str
    ttft_predicted_us: int
    ttft_us: int


@dataclass(frozen=True, slots=True)
class StreamedAnswer:
    """A streamed answer of an own engine.

    `tpot_us` is the mean time per token after the first. `tpot_us` is `None` if there was no second
    token.
    """

    opened_us: int
    engine: str
    ttft_us: int
    tpot_us: int | None
    request_id: str
    output_tokens: int


def attempts(
    connection: Connection,
    scope: Scope,
    *,
    where: dict[str, str] | None = None,
    limit: int = 200,
    dearest: bool = False,
) -> list[AttemptDetail]:
    """Return single attempts, latest first. `where` maps columns of `AttemptDetail` to values.

    `dearest` sorts by booked cost, highest first, attempts without a cost last. That reads every
    row of the scope, so use it for a scope of few days.
    """
    columns: dict[str, Any] = {
        field.name: getattr(AttemptRow, {"team": "team_id"}.get(field.name, field.name))
        for field in fields(AttemptDetail)
        if field.name != "claimed_pusd"
    }
    columns["claimed_pusd"] = claimed_column()
    columns["input_tokens"] = INPUT_TOKENS
    columns["output_tokens"] = OUTPUT_TOKENS
    columns["cached_tokens"] = func.coalesce(token_column("cached"), 0)
    latest = (AttemptRow.opened_us.desc(), AttemptRow.seq.desc())
    first = (AttemptRow.cost_pusd.desc().nulls_last(),) if dearest else ()
    statement = select(*columns.values()).order_by(*first, *latest)
    for name, value in (where or {}).items():
        statement = statement.where(columns[name] == value)
    limited = scope.narrow(statement).limit(min(limit, ROWS_LIMIT))
    return [AttemptDetail(*row) for row in rows(connection, limited)]


def charged_by(connection: Connection, scope: Scope, targets: Sequence[str]) -> dict[str, int]:
    """Return the price version of each target's latest priced answer, where there is one."""
    found: dict[str, int] = {}
    for target in targets:
        latest = (
            select(AttemptRow.price_version)
            .where(AttemptRow.target == target, AttemptRow.price_version.is_not(None))
            .order_by(AttemptRow.opened_us.desc())
            .limit(1)
        )
        version = connection.execute(scope.narrow(latest)).scalar_one_or_none()
        if version is not None:
            found[target] = version
    return found


def compared_costs(connection: Connection, attempt_id: str) -> list[AttemptComparison]:
    statement = (
        select(
            ComparedCostRow.comparator,
            ComparedCostRow.position,
            ComparedCostRow.ratio_ppm,
            ComparedCostRow.cost_pusd,
            ComparedCostRow.cached_tokens,
        )
        .where(ComparedCostRow.attempt_id == attempt_id)
        .order_by(ComparedCostRow.position)
    )
    return [AttemptComparison(*row) for row in rows(connection, statement)]


def decision(connection: Connection, attempt_id: str) -> bytes | None:
    """Return the frozen inputs and verdicts of a decision as msgpack, `None` past retention."""
    statement = select(AttemptDecisionRow.decision).where(
        AttemptDecisionRow.attempt_id == attempt_id
    )
    return connection.execute(statement).scalar_one_or_none()


def ttft_pairs(connection: Connection, scope: Scope, *, limit: int = 500) -> list[TtftPrediction]:
    """Return the latest answers with both a predicted and an observed time to first token."""
    statement = (
        select(
            AttemptRow.opened_us,
            AttemptRow.target,
            AttemptRow.backend,
            AttemptRow.ttft_predicted_us,
            AttemptRow.ttft_us,
        )
        .where(AttemptRow.ttft_predicted_us.is_not(None), AttemptRow.ttft_us.is_not(None))
        .order_by(AttemptRow.opened_us.desc())
        .limit(min(limit, ROWS_LIMIT))
    )
    return [TtftPrediction(*row) for row in rows(connection, scope.narrow(statement))]


def slo_attainment(connection: Connection, scope: Scope, *, limit: int) -> list[SloAttainment]:
    """Return the SLO attainment of the latest `limit` answers by policy, busiest first."""
    latest = (
        scope.narrow(select(AttemptRow.policy, AttemptRow.slo_met))
        .where(AttemptRow.slo_met.is_not(None), AttemptRow.status.in_(ANSWERED))
        .order_by(AttemptRow.opened_us.desc())
        .limit(limit)
        .subquery()
    )
    met = func.sum(case((latest.c.slo_met, 1), else_=0))
    statement = (
        select(latest.c.policy, func.count(), met)
        .group_by(latest.c.policy)
        .order_by(func.count().desc(), latest.c.policy)
    )
    return [SloAttainment(*row) for row in rows(connection, statement)]


def streamed(
    connection: Connection, scope: Scope, engines: Iterable[str], *, limit: int
) -> list[StreamedAnswer]:
    """Return the latest finished streams, up to `limit` of each engine, oldest first."""
    names = ("opened_us", "target", "ttft_us", "duration_us", "output_tokens", "request_id")
    found = []
    for engine in engines:
        statement = (
            select(*(getattr(AttemptRow, name) for name in names))
            .where(AttemptRow.target == engine, AttemptRow.status == "finished")
            .where(
                AttemptRow.stream,
                AttemptRow.ttft_us.is_not(None),
                AttemptRow.duration_us.is_not(None),
            )
            .order_by(AttemptRow.opened_us.desc())
            .limit(min(limit, ROWS_LIMIT))
        )
        for opened_us, target, ttft_us, duration_us, tokens, request_id in rows(
            connection, scope.narrow(statement)
        ):
            later = (tokens or 0) - 1
            tpot_us = (duration_us - ttft_us) // later if later > 0 else None
            found.append(
                StreamedAnswer(opened_us, target, ttft_us, tpot_us, request_id, tokens or 0)
            )
    return sorted(found, key=lambda answer: answer.opened_us)
