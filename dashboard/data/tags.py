"""Reads of sums by team and by tags or key, with the rules of `data`."""

from collections.abc import Mapping
from dataclasses import replace

from sqlalchemy import Connection

from dashboard.data.reads import DashboardView, query
from dashboard.viewer import ViewerScope
from ledger.queries.reads import DAY_US, AttemptDetail, Scope, SpendPoint
from ledger.queries.tags import KeySpend, TagSpend, key_names
from ledger.queries.tags import attempts_of_key as read_attempts_of_key
from ledger.queries.tags import keyed as read_keyed
from ledger.queries.tags import spent_by_hour as read_spent_by_hour
from ledger.queries.tags import spent_by_key as read_spent_by_key
from ledger.queries.tags import tagged as read_tagged
from ledger.queries.tags import whole_from_us as read_whole_from_us
from ledger.reporting_zone import reporting_zone
from ledger.reports.zone_days import day_spent


@query(ViewerScope.TEAM)
def tagged(connection: Connection, view: DashboardView) -> list[TagSpend]:
    return read_tagged(connection, view.scope)


@query(ViewerScope.TEAM)
def spent_by_hour(connection: Connection, view: DashboardView) -> dict[int, int]:
    """Return pico-USD by start of hour, for hours with spending."""
    return read_spent_by_hour(connection, view.scope)


@query(ViewerScope.TEAM)
def keyed(connection: Connection, view: DashboardView) -> list[KeySpend]:
    """Return sums by team, key and backend."""
    return read_keyed(connection, view.scope)


@query(ViewerScope.NAMES, entries=4, teams=False)
def whole_from_us(connection: Connection, _view: DashboardView) -> int:
    """Return the time from which sums by key include every attempt."""
    return read_whole_from_us(connection)


@query(ViewerScope.TEAM)
def labels(connection: Connection, view: DashboardView) -> Mapping[str, str]:
    """Return labels of named keys, by key id."""
    names = key_names(connection, view.team)
    return {name: _label(name, names) for name in names}


@query(ViewerScope.TEAM)
def attempts_of_key(
    connection: Connection,
    view: DashboardView,
    key_id: str,
    where: tuple[tuple[str, str], ...],
    limit: int,
    dearest: bool = False,
) -> list[AttemptDetail]:
    return read_attempts_of_key(
        connection, view.scope, key_id, where=dict(where), limit=limit, dearest=dearest
    )


@query(ViewerScope.TEAM)
def spent_by_key(connection: Connection, view: DashboardView, width_us: int) -> list[SpendPoint]:
    """Return spending in buckets of `width_us`, by key label."""
    names = key_names(connection, view.team)
    return [
        replace(point, name=_label(point.name, names))
        for point in _spent_by_key(connection, view.scope, width_us)
    ]


def _spent_by_key(connection: Connection, scope: Scope, width_us: int) -> list[SpendPoint]:
    if width_us != DAY_US:
        return read_spent_by_key(connection, scope, width_us)
    return day_spent(connection, scope, reporting_zone(connection), read_spent_by_key)


def _label(key_id: str, names: Mapping[str, str]) -> str:
    """Return a key's name with its id, because names may repeat."""
    return f"{names[key_id]} ({key_id})" if key_id in names else key_id
