"""A snapshot of all budgets, as brokers and workers follow them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import Engine

from ledger.budgets import broker_protocol as wire
from ledger.budgets.binding import BudgetLine
from ledger.budgets.grants import (
    AccountBalance,
    BudgetAccount,
    budgets,
    standings,
    used_of_windows,
)
from ledger.budgets.windows import starts_around

SpentByWindow = tuple[tuple[str, int, str], ...]  # budget, window, pUSD as decimal text


@dataclass(frozen=True, slots=True)
class BudgetSnapshot:
    """Budgets of the database: lines, spending and claims by window, this host's idle grants.

    `calendars` are the (period, time zone) pairs of the lines. `at_us` is the time of reading,
    `None` if the windows of all times were read.
    """

    lines: tuple[wire.BudgetTerms, ...]
    spent: SpentByWindow
    standings: Mapping[BudgetAccount, AccountBalance]
    calendars: frozenset[tuple[str, str]]
    at_us: int | None = field(default=None, compare=False)

    def starts(self, at_us: int) -> set[int]:
        """Return the starts of the windows that count at a time."""
        return starts_around(self.calendars, at_us // 10**6)

    def accounts_to_share(self) -> list[BudgetAccount]:
        """Return accounts with grants of other hosts, or with more use than the limit."""
        return [
            account
            for account, standing in self.standings.items()
            if standing.others or standing.remaining_pusd < 0
        ]


def read_budgets(engine: Engine, host: str, at_us: int | None = None) -> BudgetSnapshot:
    """Read the budgets in force and this host's part of them.

    With `at_us`, only windows of that time are read; without it, all windows.
    """
    found = budgets(engine)
    calendars = frozenset((line.period, line.timezone) for line in found)
    starts = None if at_us is None else starts_around(calendars, at_us // 10**6)
    used = sorted(used_of_windows(engine, starts).items())
    return BudgetSnapshot(
        tuple(_terms_of(budget) for budget in found),
        tuple((key.budget_id, key.window, str(pusd)) for key, pusd in used),
        standings(engine, host, unspent=True, starts=starts),
        calendars,
        at_us,
    )


def _terms_of(budget: BudgetLine) -> wire.BudgetTerms:
    return wire.BudgetTerms(
        budget.id,
        budget.scope,
        budget.period,
        budget.timezone,
        budget.hard,
        str(budget.limit_pusd),
    )
