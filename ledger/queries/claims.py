"""Reads claims beyond holds: they are owed if they are billed, and disputed."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from ledger.orm.tables import AttemptRow, ClaimRow, exact_sum
from ledger.spans import Scope, rows


@dataclass(frozen=True, slots=True)
class ClaimGroup:
    """Claims of one bucket, team and model: how many attempts, and what is claimed beyond them."""

    start_us: int
    org: str
    team: str
    provider: str
    target: str
    upstream_model: str
    model: str
    simulated: bool
    attempts: int
    surplus_pusd: int


def claim_groups(connection: Connection, scope: Scope, *, bucket_us: int) -> Iterator[ClaimGroup]:
    """The scope's claims by bucket of their attempts' begin, in order."""
    start = (AttemptRow.opened_us - AttemptRow.opened_us % bucket_us).label("start_us")
    by = (
        AttemptRow.org_id,
        AttemptRow.team_id,
        func.coalesce(AttemptRow.provider, AttemptRow.target),
        AttemptRow.target,
        AttemptRow.upstream_model,
        AttemptRow.model,
        AttemptRow.simulated,
    )
    statement = (
        select(start, *by, func.count(), exact_sum(ClaimRow.claimed_pusd - ClaimRow.booked_pusd))
        .join(ClaimRow, ClaimRow.attempt_id == AttemptRow.attempt_id)
        .group_by("start_us", *by)
        .order_by("start_us", *by)
    )
    for row in rows(connection, scope.narrow(statement)):
        yield ClaimGroup(*row)
