"""Reads of what people entered, budgets and prices charged by, refused and remembered as `data`."""

from collections.abc import Sequence

from dashboard.data import View, engine, read
from dashboard.viewer import Reach
from ledger.budgets.states import BudgetState, budget_states
from ledger.database import snapshot
from ledger.entered import CURRENCY, PROJECT, RATE, SCENARIO, Entered, entries
from ledger.fleet.paidrates import RateVersion, rate_versions
from ledger.queries import reads as queries


@read(Reach.BOOKS, entries=4, teams=False)
def rates(view: View) -> tuple[list[RateVersion], Sequence[Entered]]:
    """Every version of the pools' rates, the oldest first, and what was entered, the newest."""
    with snapshot(engine(view.url)) as connection:
        return rate_versions(connection), entries(connection, RATE)


@read(Reach.BOOKS, entries=4, teams=False)
def projects(view: View) -> Sequence[Entered]:
    """Whose the projects on bills are, the newest first."""
    with engine(view.url).connect() as connection:
        return entries(connection, PROJECT)


@read(Reach.HOUSE, entries=4, teams=False)
def budgets(view: View) -> list[BudgetState]:
    """Every budget in the window of this moment."""
    with snapshot(engine(view.url)) as connection:
        return budget_states(connection, view.now_us)


@read(Reach.BOOKS, entries=4)
def charged_by(view: View, targets: tuple[str, ...]) -> dict[str, int]:
    """The price version of each target's latest priced answer in the period."""
    with snapshot(engine(view.url)) as connection:
        return queries.charged_by(connection, view.scope, targets)


@read(Reach.HOUSE, entries=4, teams=False)
def scenarios(view: View) -> Sequence[Entered]:
    """Every version of every scenario, the newest first."""
    with engine(view.url).connect() as connection:
        return entries(connection, SCENARIO)


@read(Reach.NAMES, entries=4, teams=False)
def quotes(view: View) -> Sequence[Entered]:
    """Rates of currencies, the newest first."""
    with engine(view.url).connect() as connection:
        return entries(connection, CURRENCY)
