"""Recorded traffic for replays: requests with their times, and how APIs answered.

A request counts once, as its last attempt with an answer. Refused requests, and requests that
failed at every target, have no lengths and are only counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, and_, func, select

from ledger.orm.tables import (
    AttemptDecisionRow,
    AttemptRow,
    ComparedCostRow,
    KeyRow,
    RefusalRow,
    TeamRow,
    token_column,
)
from ledger.request_kinds import CONVERSATION
from ledger.seals.compactions import compacted_refusals
from ledger.spans import INPUT_TOKENS, OUTPUT_TOKENS, Scope

ROWS_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request as it was served. `ttft_us` and `duration_us` are set if an API served it.

    `inside`: its key or team may not leave own engines. `cached`: prompt tokens that an API charged
    as cached, or would have for an own engine's answer. `decision`: the stored decision, if any.
    """

    request_id: str
    opened_us: int
    model: str
    team: str
    input_tokens: int
    output_tokens: int
    api: str | None
    ttft_us: int | None
    duration_us: int | None
    inside: bool = False
    cached: int = 0
    decision: bytes | None = None
    content: str | None = None


@dataclass(frozen=True, slots=True)
class RecordedLength:
    """The length of an answer; `cut` is true if a limit ended it."""

    model: str
    team: str
    input_tokens: int
    output_tokens: int
    cut: bool


def recorded_requests(connection: Connection, scope: Scope) -> Iterator[RecordedRequest]:
    """Yield requests in time order; a request that was answered in two parts comes twice."""
    columns = (
        AttemptRow.request_id,
        AttemptRow.opened_us,
        AttemptRow.model,
        AttemptRow.team_id,
        INPUT_TOKENS,
        OUTPUT_TOKENS,
        AttemptRow.backend,
        AttemptRow.target,
        AttemptRow.ttft_us,
        AttemptRow.duration_us,
        token_column("cached"),
        ComparedCostRow.cached_tokens,
        AttemptDecisionRow.decision,
        AttemptRow.content,
        KeyRow.residency,
        TeamRow.residency,
    )
    query = (
        scope.narrow(select(*columns))
        .outerjoin(
            ComparedCostRow,
            and_(
                ComparedCostRow.attempt_id == AttemptRow.attempt_id, ComparedCostRow.position == 0
            ),
        )
        .outerjoin(AttemptDecisionRow, AttemptDecisionRow.attempt_id == AttemptRow.attempt_id)
        .outerjoin(KeyRow, KeyRow.id == AttemptRow.key_id)
        .outerjoin(TeamRow, TeamRow.id == AttemptRow.team_id)
        .where(AttemptRow.kind.in_(sorted(CONVERSATION)), OUTPUT_TOKENS > 0, INPUT_TOKENS > 0)
        .order_by(AttemptRow.opened_us, AttemptRow.seq)
    )
    for row in connection.execute(query, execution_options={"yield_per": ROWS_AT_ONCE}):
        request, at_us, model, team, prompt, output, backend, target, *rest = row
        ttft, duration, cached, elsewhere, decision, content, *said = rest
        yield RecordedRequest(
            request,
            at_us,
            model,
            team,
            prompt,
            output,
            target if backend == "api" else None,
            ttft,
            duration,
            "internal_only" in said,
            (cached if backend == "api" else elsewhere) or 0,
            decision,
            content,
        )


def answers_before(connection: Connection, at_us: int, *, most: int) -> list[RecordedLength]:
    """Return the last `most` answers before a time, in time order: the lengths known then."""
    query = (
        select(
            AttemptRow.model,
            AttemptRow.team_id,
            INPUT_TOKENS,
            OUTPUT_TOKENS,
            AttemptRow.finish_reason,
        )
        .where(
            AttemptRow.opened_us < at_us,
            AttemptRow.kind.in_(sorted(CONVERSATION)),
            AttemptRow.status == "finished",
            OUTPUT_TOKENS > 0,
        )
        .order_by(AttemptRow.opened_us.desc())
        .limit(most)
    )
    found = [
        RecordedLength(model, team, prompt, output, reason == "length")
        for model, team, prompt, output, reason in connection.execute(query)
    ]
    return found[::-1]


def refused_requests(connection: Connection, scope: Scope) -> int:
    """Return the number of requests of the span that were not served."""
    query = select(func.count()).where(
        RefusalRow.refused_us >= scope.start_us, RefusalRow.refused_us < scope.end_us
    )
    old = sum(
        refusals.requests
        for refusals in compacted_refusals(connection, Scope(scope.start_us, scope.end_us))
    )
    return int(connection.execute(query).scalar_one()) + old
