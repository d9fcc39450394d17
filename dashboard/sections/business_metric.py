"""The cost of a customer, ticket or order: a metric from a file, beside what its days cost."""

from collections.abc import Mapping
from datetime import date
from fractions import Fraction
from typing import Any

import streamlit as st

from dashboard import formatting, theme
from dashboard.data import days
from dashboard.data.reads import DashboardView
from ledger.csvtable import CsvTableError
from ledger.reporting_zone import ReportingZone
from ledger.reports.business_metric import MetricFileError, MetricUnitCost, parse_metric, unit_costs
from ledger.reports.series import spend
from ledger.reports.survey import Survey
from ledger.spans import DAY_US


def show(view: DashboardView, survey: Survey) -> None:
    """Ask for a file, and divide; the file stays in this browser's session."""
    file = st.file_uploader(
        "Customers, tickets or orders by day, as CSV: day, value, team (may be empty)", type="csv",
        key="metric-file",
    )  # fmt: skip
    if file is None:
        return
    try:
        metric = parse_metric(file.getvalue(), file.name)
    except (MetricFileError, CsvTableError) as error:
        for line in str(error).splitlines():
            st.error(formatting.quote(line), icon=":material/edit_note:")
        return
    found = unit_costs(metric, spent_by_day(view, survey))
    theme.table(rows(found), about="spend")
    st.caption(
        "Whole days of this period alone. The house's cost has idle time in it; a team's is its "
        "APIs and its own engines at their provisional charge. " + " ".join(_skipped(found))
    )


def spent_by_day(view: DashboardView, survey: Survey) -> Mapping[tuple[date, str | None], int]:
    """Return spending by whole day of the reporting zone: the house under None, and each team."""
    zone = days.reporting_zone(view)
    whole = {
        day.start_us
        for day in zone.days(view.scope)
        if zone.day(day.start_us) == (day.start_us, day.end_us)
    }
    found: dict[tuple[date, str | None], int] = {}
    teams = days.spent(view, "team", DAY_US)
    named = {point.name for point in teams}
    for start_us in whole:
        day = zone.date_of(start_us)
        found |= dict.fromkeys([(day, None), *((day, name) for name in named)], 0)
    house = [(None, point.start_us, point.pusd) for point in spend(survey)]
    for team, start_us, pusd in [*house, *((p.name, p.start_us, p.cost_pusd) for p in teams)]:
        first_us = _day_of(zone, start_us)
        if first_us in whole:
            found[zone.date_of(first_us), team] += pusd
    if view.team is not None:  # the survey is of one team, and so is what is under None
        found = {place: pusd for place, pusd in found.items() if place[1] is not None}
    return found


def _day_of(zone: ReportingZone, at_us: int) -> int:
    return zone.day(at_us)[0]


def rows(found: list[MetricUnitCost]) -> list[dict[str, Any]]:
    """A row for the house and each team of the file."""
    return [
        {
            "of": cost.team or "everyone",
            "cost of one": "not known"
            if cost.pusd_per_unit is None
            else formatting.money(Fraction(cost.pusd_per_unit)),
            "units": float(cost.units),
            "cost": formatting.money(cost.pusd),
            "days": cost.days,
        }
        for cost in found
    ]


def _skipped(found: list[MetricUnitCost]) -> list[str]:
    return [
        f"Of {cost.team or 'everyone'} {formatting.plural(len(cost.skipped), 'day')} of the file "
        f"{'is' if len(cost.skipped) == 1 else 'are'} not in here: {cost.skipped[0]} first."
        for cost in found
        if cost.skipped
    ]
