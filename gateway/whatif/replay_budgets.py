"""Teams' hard budgets in a what-if: requests are refused and counted in their windows.

Each window begins with nothing spent, including the one in which the traffic begins: earlier
spending is unknown here. A request holds its maximum cost and releases the rest. Own engines are
charged the forecast engine-seconds at their contract's rate, like a provisional charge. Scopes
other than `team:NAME`, and soft budgets, are not replayed.
"""

from collections.abc import Iterable
from typing import NamedTuple

from gateway.config.settings import BudgetSection
from ledger.budgets.binding import binding
from ledger.budgets.escrow import budget_key
from ledger.budgets.scopes import TEAM
from ledger.budgets.windows import CalendarWindow, window_at
from ledger.money import usd_to_pusd


class ReplayBudget:
    """One budget; its current window is that of the last request."""

    def __init__(self, budget: BudgetSection) -> None:
        self._budget = budget
        self._limit = usd_to_pusd(budget.usd)
        self._window = CalendarWindow(0, 0)
        self._taken: dict[int, int] = {}  # spent and held, by window

    def window_at_us(self, at_us: int) -> int:
        """Return the start of the window of this time."""
        at_s = at_us // 1_000_000
        if not self._window.start_s <= at_s < self._window.end_s:
            self._window = window_at(self._budget.period, self._budget.timezone, at_s)
        return self._window.start_s

    def remaining_pusd(self, window: int) -> int:
        return max(0, self._limit - self._taken.get(window, 0))

    def reserve(self, window: int, pusd: int) -> None:
        self._taken[window] = self._taken.get(window, 0) + pusd


class ReplayHold(NamedTuple):
    """The maximum cost of a request, held on each budget of its team, by window."""

    pusd: int
    taken: tuple[tuple[ReplayBudget, int], ...]

    def settle(self, charged_pusd: int) -> None:
        for purse, window in self.taken:
            purse.reserve(window, charged_pusd - self.pusd)


class _NamedBudget:
    """A budget in the form that `binding` expects."""

    def __init__(self, budget: BudgetSection) -> None:
        self.budget, self.period = budget, budget.period
        self.id = budget_key(budget.scope, budget.period)


class ReplayBudgets:
    """All hard budgets of teams."""

    def __init__(self, budgets: Iterable[BudgetSection]) -> None:
        self._budgets: dict[str, list[_NamedBudget]] = {}
        for budget in budgets:
            if budget.scope.partition(":")[0] == TEAM.prefix:
                self._budgets.setdefault(budget.scope, []).append(_NamedBudget(budget))
        self._of: dict[str, list[ReplayBudget]] = {}

    def remaining_pusd(self, team: str, at_us: int) -> int | None:
        """Return what the tightest budget leaves; `None` without a budget."""
        purses = self._purses(team)
        return (
            min([purse.remaining_pusd(purse.window_at_us(at_us)) for purse in purses])
            if purses
            else None
        )

    def hold(self, team: str, at_us: int, pusd: int) -> ReplayHold | None:
        purses = self._purses(team)
        if not purses:
            return None
        taken = tuple((budget, budget.window_at_us(at_us)) for budget in purses)
        for purse, window in taken:
            purse.reserve(window, pusd)
        return ReplayHold(pusd, taken)

    def _purses(self, team: str) -> list[ReplayBudget]:
        """Return the team's own budgets, and its default budgets for other periods."""
        found = self._of.get(team)
        if found is None:
            named = [budget for _, budget in binding(self._budgets, [TEAM.scope(team)])]
            found = self._of[team] = [
                ReplayBudget(budget.budget) for budget in named if budget.budget.hard
            ]
        return found
