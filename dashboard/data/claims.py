"""Reads of provider claims beyond the booked cost, within the viewer's permissions."""

from sqlalchemy import Connection

from dashboard.data.reads import DashboardView, query
from dashboard.viewer import ViewerScope
from ledger.queries.claims import ClaimTotal, claim_total


@query(ViewerScope.TEAM)
def claimed(connection: Connection, view: DashboardView) -> ClaimTotal:
    """Return the period's claims of the team, or of all teams."""
    return claim_total(connection, view.scope)
