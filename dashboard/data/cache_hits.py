"""Reads what the response cache answered, as far as a viewer may see it."""

from sqlalchemy import Connection

from dashboard.data.reads import DashboardView, query
from dashboard.viewer import ViewerScope
from ledger.queries.cache_hits import CacheTotal, cache_total


@query(ViewerScope.TEAM)
def cached(connection: Connection, view: DashboardView) -> CacheTotal:
    """Return the period's hits of the team, or of all."""
    return cache_total(connection, view.scope)
