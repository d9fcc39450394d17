"""Reads of content found in requests, within the viewer's permissions."""

from sqlalchemy import Connection

from dashboard.data.reads import DashboardView, query
from dashboard.viewer import ViewerScope
from ledger.queries.content import ContentCount, content_found


@query(ViewerScope.TEAM)
def found_content(connection: Connection, view: DashboardView) -> list[ContentCount]:
    """Return the period's finds of the team, or of all teams."""
    return content_found(connection, view.scope)
