"""Days of pages are those of the books' zone; the month's figure is the report's."""

from dashboard.data import days
from dashboard.data.reads import DashboardView
from dashboard.viewer_identity import AT_THIS_MACHINE
from ledger.database import make_engine
from ledger.reporting_zone import ReportingZone, declare_zone
from ledger.reports.month_outlook import month_outlook
from ledger.spans import DAY_US, HOUR_US


def test_reads_follow_the_zone(books) -> None:
    filled = books(days=2, peak=1.0)
    engine = make_engine(filled.url)
    zone = ReportingZone("Asia/Kolkata")
    with engine.begin() as connection:
        declare_zone(connection, zone.name, 1)
    view = DashboardView(filled.url, "30 d", None, filled.now_us, who=lambda: AT_THIS_MACHINE)
    assert days.reporting_zone(view) == zone
    by_day = days.spent(view, "team", DAY_US)
    assert by_day
    assert {point.start_us for point in by_day} == {zone.day(point.start_us)[0] for point in by_day}
    by_hour = days.spent(view, "team", HOUR_US)
    assert sum(p.cost_pusd for p in by_day) == sum(p.cost_pusd for p in by_hour)
    with engine.connect() as connection:
        assert days.month_outlook(view) == month_outlook(connection, view.now_us, zone, view.team)
    engine.dispose()
