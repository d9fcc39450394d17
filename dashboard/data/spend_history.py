"""Reads of imported spending of another gateway, within the viewer's permissions."""

from datetime import UTC, datetime

from sqlalchemy import Connection

from dashboard.data.reads import DashboardView, query
from dashboard.viewer import ViewerScope
from ledger.spend_history import HistoryTotal, history_totals


@query(ViewerScope.TEAM)
def history(connection: Connection, view: DashboardView) -> tuple[HistoryTotal, ...]:
    """Return the spending of each source in the period's UTC days, of the team or of all."""
    scope = view.scope
    first, last = (
        datetime.fromtimestamp(at_us / 1e6, UTC).date().isoformat()
        for at_us in (scope.start_us, max(scope.start_us, scope.end_us - 1))
    )
    return tuple(history_totals(connection, (first, last), scope.team))
