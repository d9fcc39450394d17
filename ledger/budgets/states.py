"""The state of every budget at one time: spent, held and remaining amounts.

After a default (`user:*`) come all accounts that it binds and that spent in the window. Clients
choose the values of a tag, so only the values with the least left follow, and the default states
how many there are.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import cast

from sqlalchemy import Connection, select

from ledger.budgets.binding import (
    BoundBudgets,
    BudgetLine,
    is_bound_by,
    is_default,
    scope_of,
    wildcard_of,
)
from ledger.budgets.escrow import budget_key
from ledger.budgets.scopes import valued_tag
from ledger.budgets.windows import CalendarWindow, Period, window_at
from ledger.journals.records import HoldState
from ledger.orm.budgets import NO_HOST, BudgetAlertRow, BudgetWindowRow, GrantRow, HoldRow
from ledger.orm.types import exact_sum

US = 10**6
EARLY = 20  # a forecast needs a twentieth of the window
VALUES_SHOWN = 5


@dataclass(frozen=True, slots=True)
class BoundAccounts:
    """All accounts with a window that a default binds. `exhausted` of them have nothing left."""

    accounts: int
    exhausted: int
    spent_pusd: int
    held_pusd: int


@dataclass(frozen=True, slots=True)
class BudgetState:
    """The state of one account. `line` is the budget that binds it. Money in pico-USD.

    `held_pusd` is the maximum cost of open requests. `alerts` are the thresholds (parts per million
    of the limit) reached in the window. `claimed_pusd` is what providers may bill beyond spending;
    it reduces the budget and is not spent. `bound` is set only for a default.
    """

    account: str
    line: BudgetLine
    window: CalendarWindow
    spent_pusd: int
    held_pusd: int = 0
    alerts: tuple[int, ...] = ()
    claimed_pusd: int = 0
    bound: BoundAccounts | None = None

    @property
    def used_pusd(self) -> int:
        """Return the amount that is spent, held or claimed."""
        return self.spent_pusd + self.held_pusd + self.claimed_pusd

    @property
    def scope(self) -> str:
        return scope_of(self.account)

    @property
    def is_default(self) -> bool:
        """Return whether this is a default itself, which has no spending."""
        return is_default(self.scope)

    @property
    def default(self) -> str | None:
        """Return the default that binds the account, `None` if the account has its own budget."""
        return None if self.account == self.line.id else self.line.id

    @property
    def is_value(self) -> bool:
        """Return whether this is a tag value without a budget of its own."""
        return self.default is not None and valued_tag(self.line.scope) is not None

    @property
    def remaining_pusd(self) -> int:
        """Return the remaining amount, negative for an overspent soft budget."""
        return self.line.limit_pusd - self.used_pusd

    def forecast_pusd(self, at_us: int) -> int | None:
        """Return the amount used at the window's end if spending goes on at the same rate.

        Claims count as they are. `None` in the first twentieth of the window.
        """
        whole_us = (self.window.end_s - self.window.start_s) * US
        passed_us = min(whole_us, at_us - self.window.start_s * US)
        if passed_us * EARLY < whole_us:
            return None
        return self.spent_pusd * whole_us // passed_us + self.claimed_pusd


def budget_states(
    connection: Connection, at_us: int, also: Collection[str] = ()
) -> list[BudgetState]:
    """Return the states of budgets in force, by id.

    `also` are scopes to include before they have spent anything.
    """
    budgets = BoundBudgets(connection)
    return [
        state
        for bound in sorted(budgets.in_force())
        for state in _of(connection, budgets, bound, at_us, also)
    ]


def _of(
    connection: Connection,
    budgets: BoundBudgets,
    bound: BudgetLine,
    at_us: int,
    also: Collection[str],
) -> list[BudgetState]:
    window = window_at(cast("Period", bound.period), bound.timezone, at_us // US)
    mine = BudgetWindowRow.budget_id == bound.id
    held_by, told_of = HoldRow.budget_id == bound.id, BudgetAlertRow.budget_id == bound.id
    owed_by = GrantRow.budget_id == bound.id
    if is_default(bound.scope):
        mine = is_bound_by(BudgetWindowRow.budget_id, bound.id)
        held_by = is_bound_by(HoldRow.budget_id, bound.id)
        told_of = is_bound_by(BudgetAlertRow.budget_id, bound.id)
        owed_by = is_bound_by(GrantRow.budget_id, bound.id)
    table = BudgetWindowRow
    query = select(table.budget_id, table.spent_pusd, table.claimed_pusd).where(
        mine, table.window == window.start_s
    )
    spent, claimed = {bound.id: 0}, {bound.id: 0}
    for budget_id, spent_pusd, claimed_pusd in connection.execute(query):
        spent[budget_id], claimed[budget_id] = spent_pusd, claimed_pusd
    for scope in also:
        if wildcard_of(scope) == bound.scope:
            spent.setdefault(budget_key(scope, bound.period), 0)
    holds = (
        select(HoldRow.budget_id, exact_sum(HoldRow.amount_pusd))
        .where(held_by, HoldRow.window == window.start_s, HoldRow.state == HoldState.HELD.value)
        .group_by(HoldRow.budget_id)
    )
    held = {row[0]: row[1] for row in connection.execute(holds)}
    # Requests that were open before the budget existed count in the grant of no host.
    nobody = select(GrantRow.budget_id, GrantRow.granted_pusd, GrantRow.spent_pusd).where(
        owed_by, GrantRow.window == window.start_s, GrantRow.host == NO_HOST
    )
    for account, granted_pusd, spent_pusd in connection.execute(nobody):
        held[account] = held.get(account, 0) + granted_pusd - spent_pusd
    reached: dict[str, list[int]] = {}
    alerts = select(BudgetAlertRow.budget_id, BudgetAlertRow.threshold_ppm).where(
        told_of, BudgetAlertRow.window == window.start_s
    )
    for account, ppm in connection.execute(alerts.order_by(BudgetAlertRow.threshold_ppm)):
        reached.setdefault(account, []).append(ppm)
    found = [
        BudgetState(
            account,
            bound,
            window,
            pusd,
            held.get(account, 0),
            tuple(reached.get(account, ())),
            claimed.get(account, 0),
        )
        for account, pusd in sorted(spent.items())
        if budgets.of(account) == bound
    ]
    return _counted(found, bound, also) if is_default(bound.scope) else found


def _counted(
    found: Sequence[BudgetState], bound: BudgetLine, also: Collection[str]
) -> list[BudgetState]:
    """Return a default with the counts of its accounts, then these; for a tag only the worst."""
    (default,) = (state for state in found if state.account == bound.id)
    bound_states = [state for state in found if state.account != bound.id]
    counts = BoundAccounts(
        len(bound_states),
        sum(state.remaining_pusd <= 0 for state in bound_states),
        sum(state.spent_pusd for state in bound_states),
        sum(state.held_pusd for state in bound_states),
    )
    if valued_tag(bound.scope) is not None:
        worst = sorted(bound_states, key=lambda state: (-state.used_pusd, state.account))
        named = [state for state in worst[VALUES_SHOWN:] if state.scope in also]
        bound_states = [*worst[:VALUES_SHOWN], *named]
    told = [replace(default, bound=counts), *bound_states]
    return sorted(told, key=lambda state: state.account)
