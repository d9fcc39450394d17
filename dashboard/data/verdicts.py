"""Fleet verdict, from the survey of all teams, shared by all pages of one time."""

from dataclasses import replace

from dashboard.data import reads
from dashboard.data.reads import DashboardView, read
from dashboard.viewer import ViewerScope
from ledger.economics.cost import TokenBasis
from ledger.economics.fleet_verdict import FleetVerdict
from ledger.reports.verdict_read import of_month


@read(ViewerScope.HOUSE, teams=False, ttl=None)
def fleet(view: DashboardView) -> FleetVerdict:
    """Return the verdict over the period, whatever team and token basis are chosen.

    A calendar month uses that month's hours, other periods those of the usual month.
    """
    found = reads.survey(replace(view, team=None, basis=TokenBasis.INPUT_OUTPUT)).verdict
    if found is None:
        raise LookupError("a survey of everyone has a verdict")
    hours = None if view.dated is None else view.dated.month_hours
    return found if hours is None else of_month(found, hours)
