"""Drill-down from sums: a day to its hours, a row to its requests, and back.

Choices appear above the page as chips that remove them. A team is chosen for the whole page, as in
the sidebar; a model, backend or key for the requests below.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial
from typing import Any

import streamlit as st

from dashboard import formatting, theme
from dashboard.charts.axes import CLICKED, clickable
from dashboard.data import days
from dashboard.data.reads import DashboardView
from dashboard.page_choices import EVERYONE, USUAL
from dashboard.periods import DAYS
from ledger.reporting_zone import ReportingZone
from ledger.reports.series import spend
from ledger.reports.survey import Survey
from ledger.spans import DAY_US

ANY, NO_DAY = "any", "choose a day"
FILTERS = {"model": "only-model", "backend": "only-target", "key": "only-key"}
UNALLOCATED = "(unallocated)"
MOST_CHIPS = 4
AGAIN, DAY_BARS = "drill-again", "spend-bars"


def show_chips(view: DashboardView) -> None:
    """Draw the current choices, each with a button to remove it."""
    if st.session_state.pop(AGAIN, False):
        st.rerun()  # the choice is in the sidebar, which a fragment does not draw
    found = chosen(view, st.session_state)
    if not found:
        return
    columns = st.columns(max(MOST_CHIPS, len(found)))
    for column, (name, value) in zip(columns, found.items(), strict=False):
        column.button(
            f"{name}: {formatting.quote(value)}", key=f"chip-{name}", icon=":material/close:",
            on_click=take_back, args=(name,), help=f"Take the {name} back",
        )  # fmt: skip


def chosen(view: DashboardView, state: Mapping[Any, Any]) -> dict[str, str]:
    """Return the choices that narrow the page, by name."""
    found = {"period": view.words} if view.dated is not None else {}
    if view.team is not None and view.viewer.sees_house:
        found["team"] = view.team
    for name, key in FILTERS.items():
        value = state.get(key, ANY)
        if value != ANY:
            found[name] = str(value)
    return found


def take_back(name: str) -> None:
    """Remove one choice; Streamlit calls this before it draws the page again."""
    st.session_state[AGAIN] = True
    if name == "period":
        st.session_state["period"] = USUAL
    elif name == "team":
        st.session_state["team"] = EVERYONE
    else:
        st.session_state[FILTERS[name]] = ANY


def show_days(view: DashboardView, survey: Survey, chart: Any) -> None:
    """Draw costs over time; a click on a day's bar shows its hours."""
    if survey.bucket_us != DAY_US:
        theme.chart(chart, about="spend")
        return
    zone = days.reporting_zone(view)
    theme.chart(
        clickable(chart, "bucket"), about="spend", key=DAY_BARS, selection_mode=CLICKED,
        on_select=partial(_open_bar, zone),
    )  # fmt: skip


def _open_bar(zone: ReportingZone) -> None:
    if (bucket := _clicked(DAY_BARS, "bucket")) is not None:
        _show_day(zone.date_of(int(bucket)))


def show_bars(name: str, chart: Any) -> None:
    """Draw sums of a group; a click on a bar narrows the page, or its requests, to it."""
    key = f"bars-{name}"
    theme.chart(
        clickable(chart, "name"), about="spend", key=key, selection_mode=CLICKED,
        on_select=partial(_choose_bar, name, key),
    )  # fmt: skip


def _choose_bar(name: str, key: str) -> None:
    if (value := _clicked(key, "name")) is not None:
        choose(name, str(value))


def _clicked(key: str, field: str) -> Any:
    """Return a field of a chart's clicked bar, or `None`."""
    selection = st.session_state[key]["selection"].get(CLICKED) or []
    return selection[0].get(field) if selection else None


def offer_days(view: DashboardView, survey: Survey) -> None:
    """Draw a selection of the chart's days, highest cost first; a chosen day shows its hours."""
    if survey.bucket_us != DAY_US:
        return
    zone = days.reporting_zone(view)
    sums: dict[int, int] = {}
    for point in spend(survey):
        sums[point.start_us] = sums.get(point.start_us, 0) + point.pusd
    names = {
        f"{zone.date_of(at_us):%d %b %Y} ({formatting.money(pusd)})": zone.date_of(at_us)
        for at_us, pusd in sorted(sums.items(), key=lambda item: (-item[1], item[0]))
    }
    st.selectbox(
        "Look into a day, the dearest first", [NO_DAY, *names], key="drill-day",
        on_change=partial(_open_day, names),
    )  # fmt: skip


def _open_day(names: Mapping[str, Any]) -> None:
    day = names.get(st.session_state.get("drill-day", NO_DAY))
    if day is not None:
        _show_day(day)
        st.session_state["drill-day"] = NO_DAY


def _show_day(day: date) -> None:
    st.session_state["period"], st.session_state["days"] = DAYS, (day, day)
    st.session_state[AGAIN] = True


def show_table(name: str, table: Sequence[Mapping[str, Any]], **how: Any) -> None:
    """Draw sums of a group; selecting a row narrows the page, or its requests, to it."""
    key = f"drill-{name}"
    theme.table(
        table, about="spend", key=key, selection_mode="single-row",
        on_select=partial(_open_row, name, [row[name] for row in table]), **how,
    )  # fmt: skip


def _open_row(name: str, values: Sequence[str]) -> None:
    selection = st.session_state[f"drill-{name}"]["selection"]["rows"]
    if selection and selection[0] < len(values):
        choose(name, values[selection[0]])


def choose(name: str, value: str) -> None:
    """Narrow the page to a team, or its requests to a model, backend or key."""
    if UNALLOCATED in value:
        return
    if name == "team":
        st.session_state["team"], st.session_state[AGAIN] = value, True
    else:
        st.session_state[FILTERS[name]] = _key_id(value) if name == "key" else value


def _key_id(label: str) -> str:
    """Return the id from a key's label, which is name and id, or the id alone."""
    return label.rpartition(" (")[2].removesuffix(")")
