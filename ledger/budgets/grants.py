"""Grants in the database: the amount of a hard budget's window that each host may spend.

A grant rises only while the window's row is locked, and only if the sum of all grants stays within
the limit. This check alone prevents overspending, whatever hosts and workers do. `escrow` decides
how much a host requests. A grant may always be lowered to what was spent. A declaration locks
windows in its own order, so no other code locks windows during a declaration.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Engine,
    Select,
    and_,
    bindparam,
    func,
    select,
    update,
)

from ledger.budgets.binding import BoundBudgets, BudgetLine
from ledger.budgets.declaring import serialize_declarations
from ledger.budgets.escrow import account_order, loan_pusd
from ledger.budgets.tag_values import ValueNeed, owner_of, refused_values
from ledger.database import in_groups, reading
from ledger.orm.base import aliased
from ledger.orm.books import AttemptRow
from ledger.orm.budgets import BOOKED, NO_HOST, BudgetWindowRow, GrantRow, HoldRow
from ledger.orm.types import exact_sum
from ledger.upserts import insert_of

LEFT_AT_ONCE = 100  # accounts per transaction: their locks make others wait


@dataclass(frozen=True, slots=True, order=True)
class BudgetAccount:
    """One window of one budget."""

    budget_id: str
    window: int

    def lock_order(self) -> tuple[int, str, int]:
        """Return the account's sort key in the order in which windows are locked."""
        return account_order(self.budget_id, self.window)


@dataclass(frozen=True, slots=True)
class GrantNeed:
    """The amount that a host lacks for one hold of `hold_pusd` of a worker."""

    account: BudgetAccount
    missing_pusd: int
    hold_pusd: int
    team: str = ""  # team of the request: a new tag value counts in its share


@dataclass(frozen=True, slots=True)
class AccountBalance:
    """An account in the database: this host's grant, and what the limit leaves for all.

    `claimed_pusd` is what providers may bill beyond spending, which cannot be granted. An account
    that is not `made` has no row: requests for it are refused.
    """

    limit_pusd: int
    granted_pusd: int
    spent_pusd: int
    mine_pusd: int
    mine_spent_pusd: int
    others: int  # further hosts with a grant
    claimed_pusd: int = 0
    made: bool = True

    @property
    def remaining_pusd(self) -> int:
        return self.limit_pusd - self.claimed_pusd - max(self.granted_pusd, self.spent_pusd)

    @property
    def unspent_pusd(self) -> int:
        """Return the amount left if all holds end without cost."""
        return self.limit_pusd - self.claimed_pusd - self.spent_pusd

    @property
    def elsewhere_pusd(self) -> int:
        """Return the unspent grants of other hosts, which may be idle."""
        granted, spent = self.granted_pusd - self.mine_pusd, self.spent_pusd - self.mine_spent_pusd
        return max(0, granted - spent) if self.others else 0


NO_ROOM = AccountBalance(0, 0, 0, 0, 0, 0, made=False)
"""Balance of an account that is not made: the team has too many of its kind."""


def budgets(engine: Engine) -> list[BudgetLine]:
    """Return the budgets in force, sorted by id."""
    with reading(engine) as connection:
        return sorted(BoundBudgets(connection).in_force())


def grow(
    engine: Engine,
    host: str,
    needs: Iterable[GrantNeed],
    together: Collection[Collection[BudgetAccount]] = (),
) -> dict[BudgetAccount, AccountBalance]:
    """Raise this host's grants by the missing amounts, or by a larger loan if much is left.

    `together` lists the new tag values that each hold needs at once. A value that no hold can use,
    because another one of its hold is refused, is left out of the result.
    """
    with engine.begin() as connection:
        serialize_declarations(connection, shared=True)
        ordered = sorted(needs, key=lambda need: need.account.lock_order())
        groups = [[(each.budget_id, each.window) for each in accounts] for accounts in together]
        wanted = [
            ValueNeed(need.account.budget_id, need.account.window, need.team, need.missing_pusd)
            for need in ordered
        ]
        refused = refused_values(connection, wanted, groups)
        grown = {}
        for need in ordered:
            account = need.account
            key = account.budget_id, account.window
            if key not in refused:
                grown[account] = _grow_grant(connection, host, need)
            elif (limit_pusd := refused[key]) is not None:
                grown[account] = replace(NO_ROOM, limit_pusd=limit_pusd)
        return grown


def shrink(engine: Engine, host: str, account: BudgetAccount, amount_pusd: int) -> AccountBalance:
    """Lower this host's grant by a free amount, never below what was spent."""
    with engine.begin() as connection:
        serialize_declarations(connection, shared=True)
        found = _lock_window(connection, host, account)
        back = min(amount_pusd, max(0, found.mine_pusd - found.mine_spent_pusd))
        return _raise(connection, host, account, found, -back)


def release_idle(engine: Engine, host: str, accounts: Iterable[BudgetAccount]) -> None:
    """Give back all unspent grants of a host that has lent nothing of them and stops lending."""
    ordered = sorted(accounts, key=BudgetAccount.lock_order)
    for some in in_groups(ordered, LEFT_AT_ONCE):
        with engine.begin() as connection:
            serialize_declarations(connection, shared=True)
            for account in some:
                found = _lock_window(connection, host, account)
                idle = max(0, found.mine_pusd - found.mine_spent_pusd)
                _raise(connection, host, account, found, -idle)


def lock_balance(
    connection: Connection, host: str, account: BudgetAccount, team: str = ""
) -> AccountBalance:
    """Return an account's balance, locked until the transaction ends.

    A missing account is added and counts in the team's share.
    """
    return _lock_window(connection, host, account, team)


def regrant(
    connection: Connection, host: str, account: BudgetAccount, before: AccountBalance, by_pusd: int
) -> AccountBalance:
    """Raise or lower a host's grant on an account that `lock_balance` has locked."""
    return _raise(connection, host, account, before, by_pusd)


def standings(
    engine: Engine, host: str, *, unspent: bool = False, starts: Collection[int] | None = None
) -> dict[BudgetAccount, AccountBalance]:
    """Return this host's accounts, read without locks. `unspent`: only those with money left.

    `starts` limits the result to windows that begin then; `None` returns all windows.
    """
    query = _UNSPENT if unspent else _STANDINGS
    given: dict[str, Any] = {"own_host": host}
    if starts is not None:
        query = _UNSPENT_FROM if unspent else _STANDINGS_FROM
        given |= {"starts": list(starts)}
    with reading(engine) as connection:
        rows = connection.execute(query, given).all()
        budgets = BoundBudgets(connection) if rows else None
    found = {}
    for budget_id, window, *sums in rows:
        bound = budgets.of(budget_id) if budgets is not None else None
        if bound is not None:
            found[BudgetAccount(budget_id, window)] = AccountBalance(bound.limit_pusd, *sums)
    return found


def used_of_windows(
    engine: Engine, starts: Collection[int] | None = None
) -> dict[BudgetAccount, int]:
    """Return what was spent or claimed, by account. `starts` is as in `standings`."""
    with reading(engine) as connection:
        if starts is None:
            rows = connection.execute(_USED)
        else:
            rows = connection.execute(_USED_FROM, {"starts": list(starts)})
        return {BudgetAccount(*row[:2]): row[2] + row[3] for row in rows}


def spent_by_journal(
    engine: Engine, journals: Iterable[str]
) -> dict[tuple[str, BudgetAccount], int]:
    """Return what attempts spent of their host's grants, in pico-USD by journal and account."""
    query = (
        select(
            AttemptRow.journal,
            HoldRow.budget_id,
            HoldRow.window,
            exact_sum(HoldRow.actual_pusd),
        )
        .join(HoldRow, HoldRow.attempt_id == AttemptRow.attempt_id)
        .where(
            AttemptRow.journal.in_(list(journals)),
            HoldRow.actual_pusd.is_not(None),
            HoldRow.amount_pusd > 0,  # not while the budget was soft
            HoldRow.state != BOOKED,
        )
        .group_by(AttemptRow.journal, HoldRow.budget_id, HoldRow.window)
    )
    with reading(engine) as connection:
        rows = connection.execute(query)
        return {(row[0], BudgetAccount(row[1], row[2])): row[3] for row in rows}


def _grow_grant(connection: Connection, host: str, need: GrantNeed) -> AccountBalance:
    found = _lock_window(connection, host, need.account, need.team)
    loan = loan_pusd(found.remaining_pusd, need.missing_pusd, need.hold_pusd, 1 + found.others)
    return _raise(connection, host, need.account, found, loan) if loan > 0 else found


def _raise(
    connection: Connection, host: str, account: BudgetAccount, before: AccountBalance, by_pusd: int
) -> AccountBalance:
    after = replace(
        before,
        granted_pusd=before.granted_pusd + by_pusd,
        mine_pusd=before.mine_pusd + by_pusd,
    )
    window = {"granted_pusd": after.granted_pusd}
    if by_pusd > 0:
        highest = select(BudgetWindowRow.limit_pusd).where(_is_window(account))
        known = connection.execute(highest).scalar_one()
        window["limit_pusd"] = max(known or 0, before.limit_pusd)
    connection.execute(update(BudgetWindowRow).where(_is_window(account)).values(**window))
    connection.execute(
        update(GrantRow)
        .where(_is_window(account, GrantRow), GrantRow.host == host)
        .values(granted_pusd=after.mine_pusd)
    )
    return after


def _lock_window(
    connection: Connection, host: str, account: BudgetAccount, team: str = ""
) -> AccountBalance:
    """Lock the account's window, adding it if missing, and return its balance."""
    insert = insert_of(connection.dialect)
    key = {"budget_id": account.budget_id, "window": account.window}
    zeros = {"spent_pusd": 0, "granted_pusd": 0}
    owner = owner_of(connection, account.budget_id, team)
    window_row = {**key, **zeros, "claimed_pusd": 0, "team_id": owner}
    connection.execute(insert(BudgetWindowRow).on_conflict_do_nothing(), [window_row])
    window = connection.execute(
        select(
            BudgetWindowRow.granted_pusd,
            BudgetWindowRow.spent_pusd,
            BudgetWindowRow.claimed_pusd,
        )
        .where(_is_window(account))
        .with_for_update()
    ).one()
    connection.execute(insert(GrantRow).on_conflict_do_nothing(), [{**key, "host": host, **zeros}])
    mine = connection.execute(
        select(GrantRow.granted_pusd, GrantRow.spent_pusd).where(
            _is_window(account, GrantRow), GrantRow.host == host
        )
    ).one()
    bound = BoundBudgets(connection, [account.budget_id]).of(account.budget_id)
    others = _others(connection, account, host)
    limit = 0 if bound is None else bound.limit_pusd
    return AccountBalance(limit, window[0], window[1], mine[0], mine[1], others, window[2])


def _others(connection: Connection, account: BudgetAccount, host: str) -> int:
    others = select(func.count()).where(
        _is_window(account, GrantRow), GrantRow.host.not_in([host, NO_HOST])
    )
    return int(connection.execute(others).scalar_one())


def _is_window(
    account: BudgetAccount, table: type[BudgetWindowRow] | type[GrantRow] = BudgetWindowRow
) -> ColumnElement[bool]:
    return and_(table.budget_id == account.budget_id, table.window == account.window)


def _standings() -> Select[Any]:
    other = aliased(GrantRow)
    others = (
        select(func.count())
        .where(
            other.budget_id == GrantRow.budget_id,
            other.window == GrantRow.window,
            other.host != bindparam("own_host"),
            other.host != NO_HOST,
        )
        .scalar_subquery()
    )
    return (
        select(
            GrantRow.budget_id,
            GrantRow.window,
            BudgetWindowRow.granted_pusd,
            BudgetWindowRow.spent_pusd,
            GrantRow.granted_pusd,
            GrantRow.spent_pusd,
            others,
            BudgetWindowRow.claimed_pusd,
        )
        .join(
            BudgetWindowRow,
            and_(
                BudgetWindowRow.budget_id == GrantRow.budget_id,
                BudgetWindowRow.window == GrantRow.window,
            ),
        )
        .where(GrantRow.host == bindparam("own_host"))
    )


# Run several times a second: building them each time took a fifth of an idle writer's CPU.
_STANDINGS = _standings()
_UNSPENT = _STANDINGS.where(GrantRow.granted_pusd != GrantRow.spent_pusd)
_BEGUN = GrantRow.window.in_(bindparam("starts", expanding=True))
_STANDINGS_FROM, _UNSPENT_FROM = _STANDINGS.where(_BEGUN), _UNSPENT.where(_BEGUN)
_USED = select(
    BudgetWindowRow.budget_id,
    BudgetWindowRow.window,
    BudgetWindowRow.spent_pusd,
    BudgetWindowRow.claimed_pusd,
)
_USED_FROM = _USED.where(BudgetWindowRow.window.in_(bindparam("starts", expanding=True)))
