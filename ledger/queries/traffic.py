"""Recorded traffic, to be played again: who asked for what and when, and how APIs answered.

A request counts once, as its last attempt that produced an answer; what was refused, or failed at
every target, has no lengths and is only counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from ledger.orm.tables import Attempt, Key, Refusal, Team
from ledger.request_kinds import CONVERSATION
from ledger.seals.condensed import refused_until
from ledger.spans import INPUT_TOKENS, OUTPUT_TOKENS, Scope

ROWS_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it was served; `ttft_us` and `duration_us` where it was an API.

    `inside`: by its key or team it may not leave.
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


def recorded_requests(connection: Connection, scope: Scope) -> Iterator[Asked]:
    """In the order of time; a request that was answered in two pieces comes twice."""
    columns = (
        Attempt.request_id, Attempt.opened_us, Attempt.model, Attempt.team_id, INPUT_TOKENS,
        OUTPUT_TOKENS, Attempt.backend, Attempt.target, Attempt.ttft_us, Attempt.duration_us,
        Key.residency, Team.residency,
    )  # fmt: skip
    query = (
        scope.narrow(select(*columns))
        .outerjoin(Key, Key.id == Attempt.key_id)
        .outerjoin(Team, Team.id == Attempt.team_id)
        .where(Attempt.kind.in_(sorted(CONVERSATION)), OUTPUT_TOKENS > 0, INPUT_TOKENS > 0)
        .order_by(Attempt.opened_us, Attempt.seq)
    )
    for row in connection.execute(query, execution_options={"yield_per": ROWS_AT_ONCE}):
        request, at_us, model, team, prompt, output, backend, target, ttft, duration, *said = row
        yield Asked(
            request, at_us, model, team, prompt, output, target if backend == "api" else None,
            ttft, duration, "internal_only" in said,
        )  # fmt: skip


def refused_requests(connection: Connection, scope: Scope) -> int:
    """Requests of the span that nobody served."""
    query = select(func.count()).where(
        Refusal.refused_us >= scope.start_us, Refusal.refused_us < scope.end_us
    )
    old = sum(
        one.requests for one in refused_until(connection, Scope(scope.start_us, scope.end_us))
    )
    return int(connection.execute(query).scalar_one()) + old
