"""Reads of response cache hits, within the viewer's permissions."""

from sqlalchemy import Connection

from dashboard.data.reads import DashboardView, query
from dashboard.viewer import ViewerScope
from ledger.queries.cache_hits import CacheTotal, cache_total


@query(ViewerScope.TEAM)
def cached(connection: Connection, view: DashboardView) -> CacheTotal:
    """Return the period's hits of the team, or of all teams."""
    return cache_total(connection, view.scope)
