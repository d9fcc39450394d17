"""Holds of attempts that are out at providers for hours, kept in the database.

Workers hold money that their host's broker lent them, and lose it when they die. A batch at a
provider outlives every process, so its holds belong to a holder of their own, `AT_PROVIDERS`. That
holder has a grant like a host: exactly what its attempts have spent and may still spend. All hosts
share it. The grant changes in the transaction that opens or settles the attempts.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, select

from ledger.budgets.binding import BudgetLine, binding
from ledger.budgets.declaring import serialize_declarations
from ledger.budgets.grants import (
    NO_ROOM,
    AccountBalance,
    BudgetAccount,
    lock_balance,
    regrant,
)
from ledger.budgets.scopes import team_of
from ledger.budgets.tag_values import ValueNeed, is_value, refused_values
from ledger.budgets.windows import window_at
from ledger.database import in_groups
from ledger.journals.records import Hold, HoldState
from ledger.orm.budgets import HoldRow

AT_PROVIDERS = "at-providers"  # the holder, and the journal that its attempts name


@dataclass(slots=True)
class BatchEscrow:
    """The remaining budgets of a few attempts, locked while the attempts are opened."""

    connection: Connection
    budgets: Sequence[BudgetLine]
    at_us: int
    _stand: dict[BudgetAccount, AccountBalance] = field(default_factory=dict)
    _held: dict[BudgetAccount, int] = field(default_factory=dict)

    def lock(self, holds: Iterable[tuple[Sequence[str], int]]) -> None:
        """Lock every hard budget of these holds, in the order that all code uses.

        A hold is an attempt's scopes and its bound. A window for a new tag value is only made for
        holds that no other budget refuses.
        """
        serialize_declarations(self.connection, shared=True)  # before any window is locked
        wanted = [
            (scopes, bound_pusd, [
                self._account(name, line) for name, line in self._bind(scopes) if line.hard
            ])
            for scopes, bound_pusd in holds
        ]  # fmt: skip
        known = {at for _, _, accounts in wanted for at in accounts if not is_value(at.budget_id)}
        self._lock(dict.fromkeys(known, ""))
        needs, together = [], []
        for scopes, bound_pusd, accounts in wanted:
            values = [at for at in accounts if is_value(at.budget_id)]
            others = [at for at in accounts if at in known]
            if all(self._remaining_pusd(account) >= bound_pusd for account in others):
                team = team_of(scopes)
                needs += [ValueNeed(at.budget_id, at.window, team, bound_pusd) for at in values]
                together.append([(at.budget_id, at.window) for at in values])
        refused = refused_values(self.connection, needs, together)
        made = {BudgetAccount(*need.key): need.team for need in needs if need.key not in refused}
        self._lock(made)

    def _lock(self, teams: Mapping[BudgetAccount, str]) -> None:
        for account in sorted(teams, key=BudgetAccount.lock_order):
            team = teams[account]
            self._stand[account] = lock_balance(self.connection, AT_PROVIDERS, account, team)

    def hold(self, scopes: Iterable[str], bound_pusd: int) -> tuple[Hold, ...] | None:
        """Return the holds of one attempt, or `None` if a budget has no room. Call `lock` first."""
        holds = []
        for budget_id, line in self._bind(scopes):
            account = self._account(budget_id, line)
            amount = bound_pusd if line.hard else 0
            if line.hard and self._remaining_pusd(account) < bound_pusd:
                return None
            holds.append(Hold(account.budget_id, account.window, amount))
        for each_hold in holds:
            account = BudgetAccount(each_hold.scope, each_hold.window)
            self._held[account] = self._held.get(account, 0) + each_hold.amount_pusd
        return tuple(holds)

    def close(self) -> None:
        """Raise the grants by the amounts held."""
        for account, pusd in sorted(self._held.items()):
            if pusd:
                regrant(self.connection, AT_PROVIDERS, account, self._stand[account], pusd)

    def _remaining_pusd(self, account: BudgetAccount) -> int:
        stand = self._stand.get(account, NO_ROOM)
        return stand.remaining_pusd - self._held.get(account, 0)

    def _bind(self, scopes: Iterable[str]) -> Iterator[tuple[str, BudgetLine]]:
        by_scope: dict[str, list[BudgetLine]] = {}
        for line in self.budgets:
            by_scope.setdefault(line.scope, []).append(line)
        return binding(by_scope, scopes)

    def _account(self, budget_id: str, line: BudgetLine) -> BudgetAccount:
        window = window_at(line.period, line.timezone, self.at_us // 1_000_000)  # type: ignore[arg-type]  # checked where budgets are made
        return BudgetAccount(budget_id, window.start_s)


def held_amounts(connection: Connection, attempts: Sequence[str]) -> dict[BudgetAccount, int]:
    """Return the amounts that attempts hold on hard budgets. Call this before settling them."""
    found: dict[BudgetAccount, int] = {}
    for some in in_groups(attempts):
        query = select(HoldRow.budget_id, HoldRow.window, HoldRow.amount_pusd).where(
            HoldRow.attempt_id.in_(some), HoldRow.state == HoldState.HELD.value
        )
        for budget_id, window, amount in connection.execute(query):
            if amount:
                account = BudgetAccount(budget_id, window)
                found[account] = found.get(account, 0) + amount
    return found


def release_grants(
    connection: Connection,
    held_pusd: Mapping[BudgetAccount, int],
    spent_pusd: Mapping[BudgetAccount, int],
) -> None:
    """Lower the grants by ended holds after the settles are written; spending stays granted."""
    for account in sorted(held_pusd, key=BudgetAccount.lock_order):
        amount = held_pusd[account]
        found = lock_balance(connection, AT_PROVIDERS, account)
        change = spent_pusd.get(account, 0) - amount
        change = max(change, found.mine_spent_pusd - found.mine_pusd)
        if change:
            regrant(connection, AT_PROVIDERS, account, found, change)
