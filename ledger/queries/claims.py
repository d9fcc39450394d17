"""Reads of provider claims beyond holds, which are disputed and owed only if billed."""

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, ScalarSelect, func, select

from ledger.orm.tables import AttemptRow, ClaimRow, exact_sum
from ledger.spans import Scope, rows


@dataclass(frozen=True, slots=True)
class ClaimGroup:
    """Claims of one bucket, team and model: number of attempts and claimed surplus."""

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


@dataclass(frozen=True, slots=True)
class ClaimTotal:
    """Attempts of a scope with claims, and the claimed surplus over the booked cost."""

    attempts: int
    surplus_pusd: int


def claimed_column() -> ScalarSelect[int]:
    """Return a query column of an attempt's claimed cost, null without a claim."""
    return (
        select(ClaimRow.claimed_pusd)
        .where(ClaimRow.attempt_id == AttemptRow.attempt_id)
        .correlate(AttemptRow)
        .scalar_subquery()
    )


def claim_total(connection: Connection, scope: Scope) -> ClaimTotal:
    """Return the scope's claims, as one sum that booked spend does not include."""
    surplus = exact_sum(ClaimRow.claimed_pusd - ClaimRow.booked_pusd)
    statement = (
        select(func.count(), surplus)
        .join(AttemptRow, ClaimRow.attempt_id == AttemptRow.attempt_id)
        .where(ClaimRow.settled_us >= scope.start_us)  # an index has it; it follows the open
    )
    count, pusd = connection.execute(scope.narrow(statement)).one()
    return ClaimTotal(int(count), int(pusd or 0))


def claim_groups(connection: Connection, scope: Scope, *, bucket_us: int) -> Iterator[ClaimGroup]:
    """Yield the scope's claims by bucket of the attempts' opening, in time order."""
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
