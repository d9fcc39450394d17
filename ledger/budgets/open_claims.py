"""Open claims: what providers may bill beyond what was booked, counted beside what was spent.

The plausible part of a claim narrows the budgets that its attempt was counted on, in the windows of
its holds, until the claim is reconciled. It is not spending: no grant covers it and nothing is
booked by it. A window's `claimed_pusd` is the sum of its claims' `counted_pusd`, always. Windows
are locked in the order in which the writer locks them, after the claims themselves.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Select, and_, bindparam, select, update

from ledger.orm.books import AttemptRow, ClaimRow
from ledger.orm.budgets import BudgetWindowRow, HoldRow
from ledger.orm.types import exact_sum

BILLED: Final = "billed"  # an invoice of its day was posted: what it covers goes on counting
WAIVED: Final = "waived"  # a person decided that it is not owed: nothing counts
IDS_PER_QUERY = 500


class Resolution(msgspec.Struct, frozen=True):
    """How a claim was settled between people, by whom and when."""

    word: str  # BILLED | WAIVED
    at_us: int
    by: str


class BudgetClaim(msgspec.Struct, frozen=True):
    """One claim with what its attempt says of it. Money in pico-USD.

    `plausible_pusd` is None where the record did not say: such a claim counts nothing.
    """

    attempt_id: str
    settled_us: int
    team: str
    provider: str | None
    target: str
    booked_pusd: int
    claimed_pusd: int
    plausible_pusd: int | None
    counted_pusd: int
    resolution: str | None
    resolved_us: int | None
    resolved_by: str | None

    @property
    def surplus_pusd(self) -> int:
        return self.claimed_pusd - self.booked_pusd


def billed_parts(claims: Sequence[BudgetClaim], billed_pusd: int) -> dict[str, int]:
    """Return, by attempt, what of each claim a bill of all of them has, in proportion.

    Whole at most, and together at most what was billed: fractions are dropped.
    """
    total = sum(claim.surplus_pusd for claim in claims)
    billed = max(0, min(billed_pusd, total))
    if not total:
        return {}
    return {claim.attempt_id: claim.surplus_pusd * billed // total for claim in claims}


def claimed_pusd(connection: Connection, budget_id: str, start: int) -> int:
    """Return what claims count in one window, from the claims themselves."""
    query = (
        select(exact_sum(ClaimRow.counted_pusd))
        .join(HoldRow, HoldRow.attempt_id == ClaimRow.attempt_id)
        .where(HoldRow.budget_id == budget_id, HoldRow.window == start, ClaimRow.counted_pusd > 0)
    )
    return int(connection.execute(query).scalar_one())


def claimed_by_window(connection: Connection) -> dict[tuple[str, int], int]:
    """Return what claims count, by budget and start of the window; without those of nothing."""
    query = (
        select(HoldRow.budget_id, HoldRow.window, exact_sum(ClaimRow.counted_pusd))
        .join(ClaimRow, ClaimRow.attempt_id == HoldRow.attempt_id)
        .where(ClaimRow.counted_pusd != 0)
        .group_by(HoldRow.budget_id, HoldRow.window)
    )
    return {(row[0], row[1]): int(row[2]) for row in connection.execute(query)}


def claims_of(connection: Connection, attempts: Sequence[str]) -> list[BudgetClaim]:
    """Return the claims of these attempts, locked until the transaction ends."""
    found = []
    for some in _groups(attempts):
        query = _SELECT.where(ClaimRow.attempt_id.in_(some)).order_by(ClaimRow.attempt_id)
        rows = connection.execute(query.with_for_update(of=ClaimRow))
        found += [BudgetClaim(*row) for row in rows]
    return found


def provider_claims(
    connection: Connection, provider: str, since_us: int, until_us: int
) -> list[BudgetClaim]:
    """Return a provider's claims of a time, by their settle; locked as above."""
    query = _SELECT.where(
        AttemptRow.provider == provider,
        ClaimRow.settled_us >= since_us,
        ClaimRow.settled_us < until_us,
    ).order_by(ClaimRow.attempt_id)
    return [BudgetClaim(*row) for row in connection.execute(query.with_for_update(of=ClaimRow))]


def list_claims(
    connection: Connection, team: str | None, *, whole: bool, limit: int
) -> list[BudgetClaim]:
    """Return claims, the newest first; `whole`: those that are resolved, too."""
    query = _SELECT
    if team is not None:
        query = query.where(AttemptRow.team_id == team)
    if not whole:
        query = query.where(ClaimRow.resolution.is_(None))
    newest = query.order_by(ClaimRow.settled_us.desc(), ClaimRow.attempt_id).limit(limit)
    return [BudgetClaim(*row) for row in connection.execute(newest)]


def resolve_claims(
    connection: Connection, counted: Mapping[str, int], resolution: Resolution
) -> None:
    """Say of claims how they were settled, and what of each still counts, by attempt.

    They are of `claims_of` or `provider_claims` in the same transaction.
    """
    recount_claims(connection, counted)
    for some in _groups(sorted(counted)):
        connection.execute(
            update(ClaimRow)
            .where(ClaimRow.attempt_id.in_(some))
            .values(
                resolution=resolution.word,
                resolved_us=resolution.at_us,
                resolved_by=resolution.by,
            )
        )


def recount_claims(connection: Connection, counted: Mapping[str, int]) -> None:
    """Let each of these claims count so much from now, and their windows follow."""
    if not counted:
        return
    rows = [{"of_attempt": name, "counted": counted[name]} for name in sorted(counted)]
    connection.execute(
        update(ClaimRow)
        .where(ClaimRow.attempt_id == bindparam("of_attempt"))
        .values(counted_pusd=bindparam("counted")),
        rows,
    )
    _total_windows(connection, [*counted])


def stop_counting(connection: Connection, attempts: Select[Any]) -> None:
    """Let claims of these attempts count nothing: they leave the books."""
    query = select(ClaimRow.attempt_id).where(
        ClaimRow.attempt_id.in_(attempts), ClaimRow.counted_pusd > 0
    )
    recount_claims(connection, dict.fromkeys(connection.execute(query).scalars(), 0))


def _total_windows(connection: Connection, attempts: Sequence[str]) -> None:
    """Lock each window of the attempts' holds, and set what is claimed to its claims' sum."""
    windows: set[tuple[str, int]] = set()
    for some in _groups(attempts):
        query = select(HoldRow.budget_id, HoldRow.window).where(HoldRow.attempt_id.in_(some))
        windows.update((row[0], row[1]) for row in connection.execute(query))
    table = BudgetWindowRow
    here = and_(table.budget_id == bindparam("of_budget"), table.window == bindparam("of_window"))
    locked = select(table.claimed_pusd).where(here).with_for_update()
    for name, start in sorted(windows):
        connection.execute(locked, {"of_budget": name, "of_window": start})
    sums = claimed_by_window(connection)
    rows = [
        {"of_budget": name, "of_window": start, "sum": sums.get((name, start), 0)}
        for name, start in sorted(windows)
    ]
    if rows:
        connection.execute(update(table).where(here).values(claimed_pusd=bindparam("sum")), rows)


def _groups(ids: Sequence[str]) -> list[Sequence[str]]:
    return [ids[start : start + IDS_PER_QUERY] for start in range(0, len(ids), IDS_PER_QUERY)]


_COLUMNS: tuple[Any, ...] = (
    ClaimRow.attempt_id,
    ClaimRow.settled_us,
    AttemptRow.team_id,
    AttemptRow.provider,
    AttemptRow.target,
    ClaimRow.booked_pusd,
    ClaimRow.claimed_pusd,
    ClaimRow.plausible_pusd,
    ClaimRow.counted_pusd,
    ClaimRow.resolution,
    ClaimRow.resolved_us,
    ClaimRow.resolved_by,
)
_SELECT = select(*_COLUMNS).join(AttemptRow, AttemptRow.attempt_id == ClaimRow.attempt_id)
