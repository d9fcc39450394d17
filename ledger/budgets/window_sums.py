"""Windows of one calendar start, brought to the sums of their holds, however many they are.

A window is locked before its holds are read: who settles meanwhile waits, and adds to what is
written here. All windows of one call cost a fixed number of statements.
"""

from collections.abc import Callable, Collection
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, bindparam, func, select, update

from ledger.budgets.escrow import account_order
from ledger.orm.base import Stored
from ledger.orm.books import AttemptRow, ClaimRow
from ledger.orm.budgets import BOOKED, NO_HOST, BudgetWindowRow, GrantRow, HoldRow
from ledger.orm.types import exact_sum
from ledger.upserts import insert_of

AccountFilter = Callable[[Stored[str]], ColumnElement[bool]]
"""Makes the condition that a column with a budget's id names one of the accounts."""


def held_accounts(connection: Connection, mine: AccountFilter, start: int) -> list[str]:
    """Return the accounts that have a hold in the window that begins at `start`."""
    here = and_(mine(HoldRow.budget_id), HoldRow.window == start)
    return [*connection.execute(select(HoldRow.budget_id).where(here).distinct()).scalars()]


def total_windows(
    connection: Connection,
    accounts: Collection[str],
    mine: AccountFilter,
    start: int,
    *,
    hard: bool = False,
    teams: bool = False,
) -> None:
    """Lock the accounts' windows (made if missing); set what each spent and is claimed to its sum.

    `mine` holds for these accounts at least. `hard`: and grant to no host what none spent. `teams`:
    a window that is made counts among the values of the team that spent there.
    """
    if not accounts:
        return
    table = BudgetWindowRow
    ordered = sorted(accounts, key=lambda name: account_order(name, start))
    owners = _teams(connection, mine, start) if teams else {}
    zeros = {"window": start, "spent_pusd": 0, "granted_pusd": 0, "claimed_pusd": 0}
    rows = [{"budget_id": name, **zeros, "team_id": owners.get(name)} for name in ordered]
    statement = insert_of(connection.dialect)(table)
    # A change to nothing locks what is there, in the one order in which windows are locked.
    unchanged = {"claimed_pusd": table.claimed_pusd}
    locking = statement.on_conflict_do_update(
        index_elements=["budget_id", "window"], set_=unchanged
    )
    connection.execute(locking, rows)
    spent = _sums(connection, exact_sum(HoldRow.actual_pusd), mine, start)
    claimed = _claims(connection, mine, start)
    _write(
        connection,
        [
            {"of_budget": name, "spent": spent.get(name, 0), "claimed": claimed.get(name, 0)}
            for name in ordered
        ],
        start,
        {"spent_pusd": bindparam("spent"), "claimed_pusd": bindparam("claimed")},
    )
    if hard:
        _grant(connection, ordered, mine, start, spent)


def _grant(
    connection: Connection,
    accounts: Collection[str],
    mine: AccountFilter,
    start: int,
    spent: dict[str, int],
) -> None:
    """Grant to no host what none spent; hosts keep what they were granted.

    Their desks lend of it as they know it: what was taken from them here would be spent twice.
    Where all of it is more than the limit, each desk gives back what lies idle with it.
    """
    hosts: dict[str, tuple[int, int]] = {}
    known: set[str] = set()
    query = select(GrantRow.budget_id, GrantRow.host, GrantRow.granted_pusd, GrantRow.spent_pusd)
    for name, host, granted, used in connection.execute(
        query.where(mine(GrantRow.budget_id), GrantRow.window == start)
    ):
        if host == NO_HOST:
            known.add(name)
            continue
        before = hosts.get(name, (0, 0))
        hosts[name] = before[0] + granted, before[1] + used
    owed = _sums(
        connection,
        exact_sum(HoldRow.amount_pusd),
        mine,
        start,
        HoldRow.state == BOOKED,
        HoldRow.actual_pusd.is_(None),
    )
    nobody, windows = [], []
    for name in accounts:
        granted, used = hosts.get(name, (0, 0))
        booked = max(0, spent.get(name, 0) - used)
        behind = booked + owed.get(name, 0)  # bounds under way that nobody was granted
        windows.append({"of_budget": name, "granted": behind + granted})
        if behind or name in known:
            row = {"budget_id": name, "window": start, "host": NO_HOST}
            nobody.append({**row, "granted_pusd": behind, "spent_pusd": booked})
    if nobody:
        statement = insert_of(connection.dialect)(GrantRow)
        changed = {name: statement.excluded[name] for name in ("granted_pusd", "spent_pusd")}
        connection.execute(
            statement.on_conflict_do_update(
                index_elements=["budget_id", "window", "host"], set_=changed
            ),
            nobody,
        )
    _write(connection, windows, start, {"granted_pusd": bindparam("granted")})


def _sums(
    connection: Connection,
    amount: ColumnElement[int],
    mine: AccountFilter,
    start: int,
    *further: ColumnElement[bool],
) -> dict[str, int]:
    query = select(HoldRow.budget_id, amount).where(
        mine(HoldRow.budget_id), HoldRow.window == start, *further
    )
    return {row[0]: int(row[1]) for row in connection.execute(query.group_by(HoldRow.budget_id))}


def _claims(connection: Connection, mine: AccountFilter, start: int) -> dict[str, int]:
    """Return what claims count, by account, from the claims themselves."""
    query = (
        select(HoldRow.budget_id, exact_sum(ClaimRow.counted_pusd))
        .join(ClaimRow, ClaimRow.attempt_id == HoldRow.attempt_id)
        .where(mine(HoldRow.budget_id), HoldRow.window == start, ClaimRow.counted_pusd > 0)
        .group_by(HoldRow.budget_id)
    )
    return {row[0]: int(row[1]) for row in connection.execute(query)}


def _teams(connection: Connection, mine: AccountFilter, start: int) -> dict[str, str]:
    query = (
        select(HoldRow.budget_id, func.min(AttemptRow.team_id))
        .join(AttemptRow, AttemptRow.attempt_id == HoldRow.attempt_id)
        .where(mine(HoldRow.budget_id), HoldRow.window == start)
        .group_by(HoldRow.budget_id)
    )
    return {row[0]: row[1] for row in connection.execute(query)}


def _write(
    connection: Connection, rows: list[dict[str, Any]], start: int, values: dict[str, Any]
) -> None:
    table = BudgetWindowRow
    here = and_(table.budget_id == bindparam("of_budget"), table.window == start)
    connection.execute(update(table).where(here).values(**values), rows)
