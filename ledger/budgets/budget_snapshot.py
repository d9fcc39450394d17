"""Reads all budgets at one moment, as a host's desk and its workers follow them."""

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
    """The database's budgets: lines, use (spent and claimed) by window, this host's idle grants.

    `calendars` are those of the lines, each a period and a time zone. `at_us`: when it was read;
    None where it has the windows of all times.
    """

    lines: tuple[wire.BudgetTerms, ...]
    spent: SpentByWindow
    standings: Mapping[BudgetAccount, AccountBalance]
    calendars: frozenset[tuple[str, str]]
    at_us: int | None = field(default=None, compare=False)

    def starts(self, at_us: int) -> set[int]:
        """Return where the windows begin that count at a moment."""
        return starts_around(self.calendars, at_us // 10**6)

    def accounts_to_share(self) -> list[BudgetAccount]:
        """Return those that other hosts spend from, and those whose limit is below their use."""
        return [
            account
            for account, standing in self.standings.items()
            if standing.others or standing.remaining_pusd < 0
        ]


def read_budgets(engine: Engine, host: str, at_us: int | None = None) -> BudgetSnapshot:
    """Read the budgets in force and this host's part in them.

    `at_us`: of the windows of that moment; None: of all that ever were.
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
