"""Reads by day and month of the reporting time zone."""

from sqlalchemy import Connection

from dashboard.data.reads import DashboardView, query
from dashboard.viewer import ViewerScope
from ledger.queries import reads as queries
from ledger.reporting_zone import ReportingZone
from ledger.reporting_zone import reporting_zone as read_zone
from ledger.reports.month_outlook import MonthOutlook
from ledger.reports.month_outlook import month_outlook as read_outlook
from ledger.reports.zone_days import day_spent
from ledger.spans import DAY_US


@query(ViewerScope.TEAM)
def spent(
    connection: Connection, view: DashboardView, by: str, width_us: int
) -> list[queries.SpendPoint]:
    """Return spending in buckets of `width_us` by team, model or backend; keys: `tags`."""
    if width_us != DAY_US:
        return queries.spent(connection, view.scope, by=by, bucket_us=width_us)
    zone = read_zone(connection)
    return day_spent(
        connection, view.scope, zone,
        lambda books, part, width_us: queries.spent(books, part, by=by, bucket_us=width_us),
    )  # fmt: skip


@query(ViewerScope.NAMES, entries=4, teams=False)
def reporting_zone(connection: Connection, _view: DashboardView) -> ReportingZone:
    """Return the time zone of days and months."""
    return read_zone(connection)


@query(ViewerScope.NAMES, entries=4, teams=False)
def first_us(connection: Connection, _view: DashboardView) -> int | None:
    """Return the time of the ledger's first record."""
    return queries.first_us(connection)


@query(ViewerScope.NAMES, entries=4, teams=False)
def begin_us(connection: Connection, _view: DashboardView) -> int | None:
    """Return the time of the first attempt or GPU hour, whichever is earlier."""
    begun = (queries.first_us(connection), queries.first_gpu_hour_us(connection))
    return min((at_us for at_us in begun if at_us is not None), default=None)


@query(ViewerScope.TEAM, entries=8)
def month_outlook(connection: Connection, view: DashboardView) -> MonthOutlook:
    """Return cost so far and forecast of the month, for the view's team."""
    return read_outlook(connection, view.now_us, read_zone(connection), view.team)
