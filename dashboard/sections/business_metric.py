"""Cost per customer, ticket or order: a metric from a file or stored, by day."""

from collections.abc import Mapping, Sequence
from datetime import date
from fractions import Fraction
from typing import Any

import streamlit as st

from dashboard import confirmation, formatting, theme
from dashboard.data import allocation, days
from dashboard.data.reads import DashboardView
from ledger.csvtable import CsvTableError
from ledger.reporting_zone import ReportingZone
from ledger.reports.business_metric import (
    Group,
    MetricDay,
    MetricFileError,
    MetricUnitCost,
    TagGroup,
    label_of,
    parse_metric,
    unit_costs,
)
from ledger.reports.series import spend
from ledger.reports.survey import Survey
from ledger.spans import DAY_US

METRICS = "metrics"  # the change's name
FILE = "a file"


def show(view: DashboardView, survey: Survey) -> None:
    """Divide cost by a stored metric or a file's; finance and admins can store a file's."""
    confirmation.show_outcome(METRICS)
    kept = allocation.metrics(view) if view.viewer.sees_house else {}
    chosen = FILE
    if kept:
        chosen = st.selectbox("Divide by", [*kept, FILE], key="metric-which")
    metric = _of_period(view, kept[chosen]) if chosen in kept else _of_file()
    if not metric:
        return
    spent = spent_by_day(view, survey, sorted(_tags(metric)))
    found = unit_costs(metric, spent)
    theme.table(rows(found), about="spend")
    st.caption(
        "Whole days of this period alone. The house's cost has idle time in it; a team's or a "
        "tag's is its APIs and its own engines at their provisional charge. "
        + " ".join(_skipped(found))
    )
    if chosen == FILE:
        _keep(view, metric)


def _of_period(view: DashboardView, metric: Sequence[MetricDay]) -> list[MetricDay]:
    """Return the metric's days within the period."""
    zone = days.reporting_zone(view)
    first, last = zone.date_of(view.scope.start_us), zone.date_of(view.scope.end_us - 1)
    found = [item for item in metric if first <= item.day <= last]
    if not found:
        st.caption("The metric has no day of this period.")
    return found


def _of_file() -> list[MetricDay]:
    file = st.file_uploader(
        "Customers, tickets or orders by day, as CSV: day, value, and team or tag (may be empty)",
        type="csv", key="metric-file",
        help="2026-11-02,120 is of the whole house. A tag is NAME=VALUE, a request's or a virtual "
        "one's, as product=support.",
    )  # fmt: skip
    if file is None:
        return []
    try:
        return parse_metric(file.getvalue(), file.name)
    except (MetricFileError, CsvTableError) as error:
        for line in str(error).splitlines():
            st.error(formatting.quote(line), icon=":material/edit_note:")
    return []


def _keep(view: DashboardView, metric: Sequence[MetricDay]) -> None:
    desk = confirmation.desk_for(view)
    if desk is None:
        return
    name = st.text_input("Keep it under the name", key="metric-name", placeholder="tickets")
    if st.button("Keep it", key="metric-keep", disabled=not name, icon=":material/save:"):
        lines = [_document(item) for item in metric]
        done = confirmation.send_change(METRICS, desk, "/business-metrics", name=name, lines=lines)
        words = formatting.plural(done["lines"], "value")
        confirmation.report_done(METRICS, f"{formatting.quote(name)} is kept with {words}.")


def _document(item: MetricDay) -> dict[str, Any]:
    whose = {} if item.group is None else {
        "tag" if isinstance(item.group, TagGroup) else "team": label_of(item.group, "")
    }  # fmt: skip
    return {"day": str(item.day), "value": f"{item.value:f}", **whose}


def _tags(metric: Sequence[MetricDay]) -> set[str]:
    return {item.group.text for item in metric if isinstance(item.group, TagGroup)}


def spent_by_day(
    view: DashboardView, survey: Survey, tags: Sequence[str] = ()
) -> Mapping[tuple[date, Group], int]:
    """Return spending by whole day of the reporting zone: in total (`None`), teams, tags."""
    zone, first_us = days.reporting_zone(view), days.first_us(view)
    whole = {
        day.start_us
        for day in zone.days(view.scope)
        if zone.day(day.start_us) == (day.start_us, day.end_us)
        and first_us is not None
        and day.start_us >= first_us  # earlier spending is not in the ledger
    }
    teams = days.spent(view, "team", DAY_US)
    points: list[tuple[Group, int, int]] = [
        *((None, point.start_us, point.pusd) for point in spend(survey)),
        *((point.name, point.start_us, point.cost_pusd) for point in teams),
    ]
    named: set[Group] = {None, *(point.name for point in teams)}
    if view.viewer.sees_house and tags and view.team is None:  # a tag's units are for all teams
        of_tags = allocation.spend_of_groups(view, tuple(tags))
        points += [(TagGroup(text), start_us, pusd) for (start_us, text), pusd in of_tags.items()]
        named |= {TagGroup(text) for _, text in of_tags}  # other groups are unknown
    found: dict[tuple[date, Group], int] = {}
    for start_us in whole:
        found |= dict.fromkeys([(zone.date_of(start_us), group) for group in named], 0)
    for group, start_us, pusd in points:
        first_us = _day_of(zone, start_us)
        if first_us in whole:
            found[zone.date_of(first_us), group] += pusd
    if view.team is not None:  # the survey is for one team, so its total is, too
        found = {place: pusd for place, pusd in found.items() if place[1] is not None}
    return found


def _day_of(zone: ReportingZone, at_us: int) -> int:
    return zone.day(at_us)[0]


def rows(found: list[MetricUnitCost]) -> list[dict[str, Any]]:
    """Return a row for the total and for each team or tag of the metric."""
    return [
        {
            "of": label_of(cost.group, "everyone"),
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
        f"Of {label_of(cost.group, 'everyone')} {formatting.plural(len(cost.skipped), 'day')} of "
        f"the metric {'is' if len(cost.skipped) == 1 else 'are'} not in here: "
        f"{cost.skipped[0]} first."
        for cost in found
        if cost.skipped
    ]
