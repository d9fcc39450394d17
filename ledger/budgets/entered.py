"""Budgets that people entered, which override those of the configuration.

An entry's name is `SCOPE@PERIOD`. An entry states a limit, or that the budget has ended. An empty
entry restores the configuration. Limits are decimal text in USD: in pico-USD they may exceed 64
bits.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

import msgspec
from sqlalchemy import Connection

from ledger.budgets.binding import BudgetLine
from ledger.budgets.escrow import budget_key
from ledger.manual_entries import BUDGET, ManualEntry, standing_entries
from ledger.money import usd_to_pusd


@dataclass(frozen=True, slots=True)
class BudgetSpec:
    scope: str
    period: str
    limit_pusd: int
    hard: bool
    timezone: str

    @property
    def id(self) -> str:
        return budget_key(self.scope, self.period)

    def as_line(self) -> BudgetLine:
        """Return the terms of this budget in force."""
        return BudgetLine(
            self.id, self.scope, self.period, self.timezone, self.hard, self.limit_pusd
        )


class EnteredBudget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The terms of an entered budget.

    `usd` is the limit per period; `None` ends the budget. `alert_ppm` are parts per million of the
    limit.
    """

    usd: str | None
    hard: bool = True
    timezone: str = "UTC"
    alert_ppm: tuple[int, ...] = ()


def budget_of(manual_entry: ManualEntry) -> EnteredBudget | None:
    """Return the entered terms, `None` if the entry restores the configuration."""
    says = manual_entry.says
    return None if says is None else msgspec.convert(says, EnteredBudget)


def entered_budgets(connection: Connection, at_us: int) -> dict[str, ManualEntry]:
    """Return the entries in force by budget, even if this clock is behind the author's."""
    return standing_entries(connection, BUDGET, at_us)


def with_entered(
    specs: Iterable[BudgetSpec], entered: Mapping[str, ManualEntry]
) -> list[BudgetSpec]:
    """Return the budgets, with entered ones in the place of configured ones."""
    found = {spec.id: spec for spec in specs}
    for name, entry in sorted(entered.items()):
        said = budget_of(entry)
        if said is None:
            continue
        if said.usd is None:
            found.pop(name, None)
        else:
            scope, _, period = name.rpartition("@")
            limit_pusd = usd_to_pusd(Decimal(said.usd))
            found[name] = BudgetSpec(scope, period, limit_pusd, said.hard, said.timezone)
    return [*found.values()]


def entered_thresholds(connection: Connection, at_us: int) -> dict[str, tuple[int, ...]]:
    """Return the alert thresholds of entered budgets, in parts per million of the limit."""
    found = {name: budget_of(entry) for name, entry in entered_budgets(connection, at_us).items()}
    return {name: said.alert_ppm for name, said in found.items() if said is not None}
