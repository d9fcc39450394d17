"""Reads that say how far the figures can be trusted: lag, gaps, refusals.

A figure without its "as of" is a guess. `freshness` says until when the journals are applied and
what is missing from the totals; `refusals` what was asked and never attempted.
"""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from ledger.orm import Attempt, JournalPosition, Quarantined, Refusal
from ledger.queries_scope import Scope, rows


@dataclass(frozen=True, slots=True)
class Freshness:
    """`applied_us` is when a journal was last read; `latest_us` the latest attempt in the books."""

    applied_us: int | None
    first_us: int | None
    latest_us: int | None
    quarantined: int


@dataclass(frozen=True, slots=True)
class Refused:
    reason: str
    model: str
    team: str
    scope: str | None  # the budget that refused
    http_status: int
    requests: int


def freshness(connection: Connection) -> Freshness:
    applied = connection.execute(select(func.max(JournalPosition.applied_us))).scalar()
    first = connection.execute(select(func.min(Attempt.opened_us))).scalar()
    latest = connection.execute(select(func.max(Attempt.opened_us))).scalar()
    quarantined = connection.execute(select(func.count()).select_from(Quarantined)).scalar_one()
    return Freshness(applied, first, latest, quarantined)


def refusals(connection: Connection, scope: Scope) -> list[Refused]:
    """Requests that were refused before any attempt, most frequent first."""
    columns = (Refusal.reason, Refusal.model, Refusal.team_id, Refusal.scope, Refusal.http_status)
    requests = func.count().label("requests")
    statement = (
        select(*columns, requests)
        .where(Refusal.refused_us >= scope.start_us, Refusal.refused_us < scope.end_us)
        .group_by(*columns)
        .order_by(requests.desc(), Refusal.reason)
    )
    if scope.team is not None:
        statement = statement.where(Refusal.team_id == scope.team)
    return [Refused(*row) for row in rows(connection, statement)]
