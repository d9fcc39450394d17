"""Open claims: charges that providers may bill beyond the booked cost.

The plausible part of a claim reduces the budgets of its attempt, in the windows of its holds, until
the claim is reconciled. A claim is not spending: no grant covers it and nothing is booked. A
window's `claimed_pusd` always equals the sum of its claims' `counted_pusd`.

Changes of claims and of the windows that they count in run one at a time (`serialize_claims`). They
lock in one order: that lock, then claims, then windows in `account_order`, as grants and the writer
do.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from sqlalchemy import Connection, Engine, and_, bindparam, func, select, update

from ledger.budgets.escrow import account_order
from ledger.database import in_groups, reading
from ledger.orm.books import AttemptRow, ClaimRow
from ledger.orm.budgets import BudgetWindowRow, HoldRow
from ledger.orm.types import exact_sum

BILLED: Final = "billed"  # an invoice of its day was posted: the covered part still counts
WAIVED: Final = "waived"  # a person decided that it is not owed: it counts nothing


class Resolution(msgspec.Struct, frozen=True):
    """The settlement of a claim by people: how, when and by whom."""

    word: str  # BILLED | WAIVED
    at_us: int
    by: str


class BudgetClaim(msgspec.Struct, frozen=True):
    """One claim with data of its attempt. Money in pico-USD.

    `plausible_pusd` is `None` if the record did not state it: such a claim counts nothing.
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
    upstream_model: str = ""

    @property
    def surplus_pusd(self) -> int:
        return self.claimed_pusd - self.booked_pusd


def claimed_by_window(connection: Connection) -> dict[tuple[str, int], int]:
    """Return the counted claims by budget and window start, without zero amounts."""
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
    for some in in_groups(attempts):
        query = _SELECT.where(ClaimRow.attempt_id.in_(some)).order_by(ClaimRow.attempt_id)
        rows = connection.execute(query.with_for_update(of=ClaimRow))
        found += [BudgetClaim(*row) for row in rows]
    return found


def provider_claims(
    connection: Connection, provider: str, *, locked: bool = True
) -> list[BudgetClaim]:
    """Return all claims of a provider; with `locked`, locked until the transaction ends."""
    query = _SELECT.where(AttemptRow.provider == provider).order_by(ClaimRow.attempt_id)
    if locked:
        query = query.with_for_update(of=ClaimRow)
    return [BudgetClaim(*row) for row in connection.execute(query)]


def list_claims(
    connection: Connection, team: str | None, *, whole: bool, limit: int
) -> list[BudgetClaim]:
    """Return claims, newest first. `whole` includes resolved ones."""
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
    """Store how claims were settled, and the amount that each still counts, by attempt.

    Read them with `claims_of` or `provider_claims` in the same transaction.
    """
    replace_resolutions(connection, settled=counted, reopened={}, resolution=resolution)


def replace_resolutions(
    connection: Connection,
    *,
    settled: Mapping[str, int],
    reopened: Mapping[str, int],
    resolution: Resolution,
) -> None:
    """Settle some claims and reopen others, with the amount that each counts, by attempt."""
    recount_claims(connection, {**settled, **reopened})
    says = resolution.word, resolution.at_us, resolution.by
    for names, (word, at_us, by) in ((settled, says), (reopened, (None, None, None))):
        for some in in_groups(sorted(names)):
            connection.execute(
                update(ClaimRow)
                .where(ClaimRow.attempt_id.in_(some))
                .values(resolution=word, resolved_us=at_us, resolved_by=by)
            )


def recount_claims(connection: Connection, counted: Mapping[str, int]) -> None:
    """Set the amount that each of these claims counts, and update their windows."""
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


def serialize_claims(connection: Connection) -> None:
    """Wait for other changes of claims, and lock them out until the transaction ends.

    Call this before any claim or window is read or locked. SQLite has one writer at a time anyway.
    """
    if connection.dialect.name == "postgresql":
        name = func.hashtext("claims and the windows that they count in")
        connection.execute(select(func.pg_advisory_xact_lock(name)))


def stop_counting(connection: Connection, attempts: Sequence[str]) -> None:
    """Set the counted amount of these attempts' claims to zero, because they leave the ledger.

    All at once: separate groups would each lock their windows in their own order.
    """
    claims: list[str] = []
    for some in in_groups(attempts):
        query = select(ClaimRow.attempt_id).where(ClaimRow.attempt_id.in_(some))
        claims += connection.execute(query.where(ClaimRow.counted_pusd > 0)).scalars()
    recount_claims(connection, dict.fromkeys(claims, 0))


def heal_windows(engine: Engine) -> int:
    """Set each window's claimed amount to the sum of its claims. Return how many were wrong.

    A host of an earlier release removes claims without updating their windows.
    """
    with reading(engine) as connection:
        table = BudgetWindowRow
        sums = claimed_by_window(connection)
        said = {
            (row[0], row[1]): int(row[2])
            for row in connection.execute(select(table.budget_id, table.window, table.claimed_pusd))
            if row[2] or (row[0], row[1]) in sums
        }
    if all(sums.get(key, 0) == pusd for key, pusd in said.items()):
        return 0
    wrong = {key for key, pusd in said.items() if sums.get(key, 0) != pusd}
    with engine.begin() as connection:
        serialize_claims(connection)
        _total(connection, wrong)
    return len(wrong)


def _total_windows(connection: Connection, attempts: Sequence[str]) -> None:
    """Set the claimed amount of the attempts' windows to the sum of their claims."""
    windows: set[tuple[str, int]] = set()
    for some in in_groups(attempts):
        query = select(HoldRow.budget_id, HoldRow.window).where(HoldRow.attempt_id.in_(some))
        windows.update((row[0], row[1]) for row in connection.execute(query))
    _total(connection, windows)


def _total(connection: Connection, windows: set[tuple[str, int]]) -> None:
    """Lock each window, and set its claimed amount to the sum of its claims."""
    table = BudgetWindowRow
    here = and_(table.budget_id == bindparam("of_budget"), table.window == bindparam("of_window"))
    locked = select(table.claimed_pusd).where(here).with_for_update()
    ordered = sorted(windows, key=lambda window: account_order(*window))
    for name, start in ordered:
        connection.execute(locked, {"of_budget": name, "of_window": start})
    sums = claimed_by_window(connection)
    rows = [
        {"of_budget": name, "of_window": start, "sum": sums.get((name, start), 0)}
        for name, start in ordered
    ]
    if rows:
        connection.execute(update(table).where(here).values(claimed_pusd=bindparam("sum")), rows)


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
    AttemptRow.upstream_model,
)
_SELECT = select(*_COLUMNS).join(AttemptRow, AttemptRow.attempt_id == ClaimRow.attempt_id)
