"""Windows of one calendar start, brought to the sums of their holds, however many they are.

All windows of one call cost a fixed number of statements, and one look at the holds.
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
    """A window's holds: what ended ones cost, and bounds under way that no host was granted."""

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
    """Lock windows (made if missing); set what each spent and is claimed to the sum of its holds.

    They are these accounts', and those of all that have a hold there and for which `mine` is true,
    which it is for the former. Nobody writes holds meanwhile (`serialize_declarations`). `hard`:
    and grant to no host what none spent. `teams`: in whose share an account's new window counts.
    """
    table, sums = BudgetWindowRow, _sums(connection, mine, start)
    ordered = sorted({*accounts, *sums}, key=lambda name: account_order(name, start))
    if not ordered:
        return
    zeros = {"window": start, "spent_pusd": 0, "granted_pusd": 0, "claimed_pusd": 0}
    rows = [{"budget_id": name, **zeros, "team_id": (teams or {}).get(name)} for name in ordered]
    statement = insert_of(connection.dialect)(table)
    # A change to nothing locks what is there, in the one order in which windows are locked.
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
    """Return the sums of all accounts with a hold in the window, in one look at the holds."""
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
    gone = RetiredHoldsRow  # an earlier month's holds are kept as sums
    retired = select(gone.budget_id, gone.actual_pusd)
    for name, pusd in connection.execute(retired.where(mine(gone.budget_id), gone.window == start)):
        before = sums.get(name, NOTHING)
        sums[name] = before._replace(spent_pusd=before.spent_pusd + int(pusd))
    return sums


def _claims(connection: Connection, mine: AccountFilter, start: int) -> dict[str, int]:
    """Return what claims count, by account, from the claims themselves."""
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
