"""Reads of entered values, budgets, and prices charged by, with the rules of `data`."""

from collections.abc import Sequence

from msgspec.structs import replace
from sqlalchemy import Connection

from dashboard.data.days import spent
from dashboard.data.reads import DashboardView, query
from dashboard.data.tags import spent_by_key
from dashboard.viewer import ViewerScope
from ledger.budgets.states import BudgetState, budget_states
from ledger.fleet.pool_records import ContractVersion
from ledger.manual_entries import (
    BUDGET,
    CURRENCY,
    GPU_PRICE,
    MUTE,
    PROJECT,
    RATE,
    RESERVED,
    SCENARIO,
    ManualEntry,
    entries,
)
from ledger.queries import reads as queries
from ledger.reports.muting import series_of
from ledger.spans import DAY_US


@query(ViewerScope.BOOKS, entries=4, teams=False)
def rates(
    connection: Connection, _view: DashboardView
) -> tuple[list[ContractVersion], Sequence[ManualEntry]]:
    """Return every version of the pools' rates, oldest first, and the entries, newest first."""
    return queries.contract_versions(connection), entries(connection, RATE)


@query(ViewerScope.BOOKS, entries=4, teams=False)
def projects(connection: Connection, _view: DashboardView) -> Sequence[ManualEntry]:
    """Return the teams of projects on bills, newest first."""
    return entries(connection, PROJECT)


@query(ViewerScope.HOUSE, entries=4, teams=False)
def budgets(connection: Connection, view: DashboardView) -> list[BudgetState]:
    """Return every budget in its current window."""
    return budget_states(connection, view.now_us)


@query(ViewerScope.HOUSE, entries=4, teams=False)
def entered_budgets(connection: Connection, _view: DashboardView) -> Sequence[ManualEntry]:
    """Return every entry of every budget, newest first."""
    return entries(connection, BUDGET)


@query(ViewerScope.TEAM, entries=8)
def mutes(connection: Connection, view: DashboardView, by: str) -> Sequence[ManualEntry]:
    """Return mutes and unmutes of series of a dimension, newest first.

    A team sees only series that it spent on, without author and note: other names may belong to
    other teams, and the people who mute keep the ledger of all teams.
    """
    found = [entry for entry in entries(connection, MUTE) if entry.name.startswith(f"{by}/")]
    if view.team is None:
        return found
    points = spent_by_key(view, DAY_US) if by == "key" else spent(view, by, DAY_US)
    own = {series_of(by, point.name) for point in points}
    return [replace(entry, actor="", note=None) for entry in found if entry.name in own]


@query(ViewerScope.BOOKS, entries=4)
def charged_by(
    connection: Connection, view: DashboardView, targets: tuple[str, ...]
) -> dict[str, int]:
    """Return the price version of each target's latest priced answer in the period."""
    return queries.charged_by(connection, view.scope, targets)


@query(ViewerScope.HOUSE, entries=4, teams=False)
def scenarios(connection: Connection, _view: DashboardView) -> Sequence[ManualEntry]:
    """Return every version of every scenario, newest first."""
    return entries(connection, SCENARIO)


@query(ViewerScope.NAMES, entries=4, teams=False)
def gpu_entries(connection: Connection, _view: DashboardView) -> Sequence[ManualEntry]:
    """Return every entered GPU price, newest first."""
    return entries(connection, GPU_PRICE)


@query(ViewerScope.HOUSE, entries=4, teams=False)
def reserved(connection: Connection, _view: DashboardView) -> Sequence[ManualEntry]:
    """Return the offers of reserved API capacity, newest first."""
    return entries(connection, RESERVED)


@query(ViewerScope.NAMES, entries=4, teams=False)
def quotes(connection: Connection, _view: DashboardView) -> Sequence[ManualEntry]:
    """Return the currency rates, newest first."""
    return entries(connection, CURRENCY)
