"""Recalculation of all windows with one start from the sums of their holds.

One call takes a fixed number of statements and one scan of the holds, for any number of windows.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, bindparam, case, select, update

from ledger.budgets.escrow import account_order
from ledger.orm.base import Stored
from ledger.orm.books import ClaimRow
from ledger.orm.budgets import BOOKED, NO_HOST, BudgetWindowRow, GrantRow, HoldRow
from ledger.orm.condensings import RetiredHoldsRow
from ledger.orm.types import exact_sum
from ledger.upserts import insert_of

AccountFilter = Callable[[Stored[str]], ColumnElement[bool]]
"""Makes the condition that a column with a budget's id names one of the accounts."""


class HoldSums(NamedTuple):
    """Sums of a window's holds: cost of ended ones, and open bounds that no host was granted."""

    spent_pusd: int = 0
    owed_pusd: int = 0


NOTHING = HoldSums()


def total_windows(
    connection: Connection,
    accounts: Collection[str],
    mine: AccountFilter,
    start: int,
    *,
    hard: bool = False,
    teams: Mapping[str, str] | None = None,
) -> None:
    """Lock windows and set their spent and claimed amounts to the sums of their holds.

    Missing windows are added. The windows are those of `accounts` and of all accounts with a hold
    for which `mine` is true; `mine` must include `accounts`. No other code may write holds in the
    meantime (`serialize_declarations`). With `hard`, ungranted spending becomes the grant of no
    host. `teams` are the teams in whose share an account's new window counts.
    """
    table, sums = BudgetWindowRow, _sums(connection, mine, start)
    ordered = sorted({*accounts, *sums}, key=lambda name: account_order(name, start))
    if not ordered:
        return
    zeros = {"window": start, "spent_pusd": 0, "granted_pusd": 0, "claimed_pusd": 0}
    rows = [{"budget_id": name, **zeros, "team_id": (teams or {}).get(name)} for name in ordered]
    statement = insert_of(connection.dialect)(table)
    # An update without a change locks existing rows, in the order that all code uses.
    unchanged = {"claimed_pusd": table.claimed_pusd}
    locking = statement.on_conflict_do_update(
        index_elements=["budget_id", "window"], set_=unchanged
    )
    connection.execute(locking, rows)
    claimed = _claims(connection, mine, start)
    _write(
        connection,
        [
            {
                "of_budget": name,
                "spent": sums.get(name, NOTHING).spent_pusd,
                "claimed": claimed.get(name, 0),
            }
            for name in ordered
        ],
        start,
        {"spent_pusd": bindparam("spent"), "claimed_pusd": bindparam("claimed")},
    )
    if hard:
        _grant(connection, ordered, mine, start, sums)


def _grant(
    connection: Connection,
    accounts: Collection[str],
    mine: AccountFilter,
    start: int,
    sums: Mapping[str, HoldSums],
) -> None:
    """Set the grant of no host to the amounts that no host spent. Hosts keep their grants.

    Brokers lend from the grants that they know, so a lower grant here would be spent twice. If the
    sum exceeds the limit, each broker gives its idle money back.
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
    nobody, windows = [], []
    for name in accounts:
        granted, used = hosts.get(name, (0, 0))
        of_holds = sums.get(name, NOTHING)
        booked = max(0, of_holds.spent_pusd - used)
        behind = booked + of_holds.owed_pusd
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


def _sums(connection: Connection, mine: AccountFilter, start: int) -> dict[str, HoldSums]:
    """Return the sums of all accounts with a hold in the window, in one scan."""
    owed = case(
        (and_(HoldRow.state == BOOKED, HoldRow.actual_pusd.is_(None)), HoldRow.amount_pusd),
        else_=0,
    )
    query = (
        select(HoldRow.budget_id, exact_sum(HoldRow.actual_pusd), exact_sum(owed))
        .where(mine(HoldRow.budget_id), HoldRow.window == start)
        .group_by(HoldRow.budget_id)
    )
    sums = {row[0]: HoldSums(int(row[1]), int(row[2])) for row in connection.execute(query)}
    gone = RetiredHoldsRow  # sums of retired holds
    retired = select(gone.budget_id, gone.actual_pusd)
    for name, pusd in connection.execute(retired.where(mine(gone.budget_id), gone.window == start)):
        before = sums.get(name, NOTHING)
        sums[name] = before._replace(spent_pusd=before.spent_pusd + int(pusd))
    return sums


def _claims(connection: Connection, mine: AccountFilter, start: int) -> dict[str, int]:
    """Return the counted claims by account, from the claims."""
    query = (
        select(HoldRow.budget_id, exact_sum(ClaimRow.counted_pusd))
        .join(ClaimRow, ClaimRow.attempt_id == HoldRow.attempt_id)
        .where(mine(HoldRow.budget_id), HoldRow.window == start, ClaimRow.counted_pusd > 0)
        .group_by(HoldRow.budget_id)
    )
    return {row[0]: int(row[1]) for row in connection.execute(query)}


def _write(
    connection: Connection, rows: list[dict[str, Any]], start: int, values: dict[str, Any]
) -> None:
    table = BudgetWindowRow
    here = and_(table.budget_id == bindparam("of_budget"), table.window == start)
    connection.execute(update(table).where(here).values(**values), rows)
