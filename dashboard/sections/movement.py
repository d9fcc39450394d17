"""Sections below spending: unit costs, changes, anomalies, hours of the week, tags."""

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import streamlit as st

from dashboard import display, formatting, theme
from dashboard.charts import spend
from dashboard.data import days, tags
from dashboard.data.reads import DashboardView
from dashboard.figures import dollars, money_columns, shown_amount
from dashboard.sections import muting
from dashboard.unitcosts import unit_costs
from ledger.economics.cost import TokenBasis
from ledger.queries.reads import DAY_US, HOUR_US, Scope, SpendPoint
from ledger.reporting_zone import ReportingZone
from ledger.reports.movements import LEAST_BUCKETS, Anomaly, anomalies, movers
from ledger.reports.muting import heard
from ledger.reports.survey import Survey

SHOWN = 8
MILLION = 10**6
SHORT_DAYS = 3
LEAST_COVERAGE = 0.9  # minimum coverage of the earlier period for a comparison


def unit_costs_of(survey: Survey) -> None:
    """Draw unit costs on both token bases; an unknown cost asks for its rate."""
    found = unit_costs(survey)
    if not found:
        st.caption("No chat was answered in this period: no token has a cost.")
        return
    for column, basis in zip(st.columns(2), TokenBasis, strict=True):
        with column:
            theme.card(
                f"Cost per 1M tokens, {basis}",
                theme.rows(*((cost.name, _price(cost.per_token[basis]), None) for cost in found)),
                about="unit",
            )
    st.caption("A figure per output token is never compared with one per token of any kind.")


def _price(pusd: Fraction | None) -> str:
    return "enter the rate" if pusd is None else formatting.money(pusd * MILLION)


def spent(view: DashboardView, by: str, width_us: int) -> list[SpendPoint]:
    """Return spending in buckets of `width_us`, by team, key, model or backend."""
    if by == "key":
        return tags.spent_by_key(view, width_us)
    return days.spent(view, by, width_us)


def show_movers(view: DashboardView, by: str) -> None:
    """Draw the change from the period before, which is named."""
    span = view.earlier_words
    if by == "key" and view.earlier.scope.start_us < tags.whole_from_us(view):
        st.caption(
            f"Attempts of {span} were retired before they were added up by key: nothing "
            "to compare with. By team, model and backend all of them are."
        )
        return
    held = _coverage(view.earlier.scope, days.first_us(view))
    if 0 < held < LEAST_COVERAGE:
        st.caption(
            f"The books have {formatting.percent(held)} of {span}: too little to "
            f"compare with ({formatting.percent(LEAST_COVERAGE)} is the least)."
        )
        return
    now, before = _sums(view, by), _sums(view.earlier, by)
    found = movers(before, now)[:SHOWN]
    if not before:
        st.caption(f"Nothing is in the books of {span}: nothing to compare with.")
        return
    if not found:
        st.caption("Nothing moved.")
        return
    records = [{"name": change.name, "usd": dollars(change.change_pusd)} for change in found]
    theme.chart(spend.changes_chart(records), about="spend")
    top = found[0]
    st.caption(
        f"Change of spending against {span}, by {by}; own engines at their provisional "
        f"charge. The most: {formatting.quote(top.name)}, from "
        f"{formatting.quote(formatting.money(top.before_pusd))} to "
        f"{formatting.quote(formatting.money(top.now_pusd))}."
    )


def _coverage(scope: Scope, first_us: int | None) -> float:
    """Return the share of a period that the ledger covers."""
    if first_us is None or first_us >= scope.end_us:
        return 0.0
    return (scope.end_us - max(scope.start_us, first_us)) / (scope.end_us - scope.start_us)


def _sums(view: DashboardView, by: str) -> dict[str, int]:
    sums = Counter[str]()
    for point in spent(view, by, DAY_US):
        sums[point.name] += point.cost_pusd
    return sums


def show_anomalies(view: DashboardView, by: str) -> None:
    """Draw days, or hours of a short period, far above the usual value of each series."""
    width = DAY_US if view.span_us > SHORT_DAYS * DAY_US else HOUR_US
    zone, name = days.reporting_zone(view), "day" if width == DAY_US else "hour"
    scope = _within_books(view.scope, days.first_us(view), zone, width)
    if scope.end_us - scope.start_us < LEAST_BUCKETS * width:
        st.caption(
            f"The books have fewer than {LEAST_BUCKETS} whole {name}s of this period: too few to "
            "call any unusual."
        )
        muting.show(view, by, ())
        return
    rows = [(point.start_us, point.name, point.cost_pusd) for point in spent(view, by, width)]
    every = anomalies(rows, _whole_buckets(zone, scope, width))
    found = heard(every, by, muting.muted(view, by))
    if not every:
        st.caption(f"No {name} of any {by} is far above its usual one.")
    elif not found:
        st.caption(f"No {name} of any {by} that is not muted is far above its usual one.")
    else:
        theme.card(
            f"Far above their usual {name}",
            theme.rows(
                *(
                    (
                        _anomaly_name(anomaly, width, zone),
                        _anomaly_text(anomaly),
                        None,
                    )
                    for anomaly in found[:SHOWN]
                )
            ),
            about="anomaly",
        )
    muting.show(view, by, (anomaly.name for anomaly in found))
    st.caption(
        f"Listed from five scaled median absolute deviations above the median {name} on, and from "
        "twice the median on."
    )


def _within_books(scope: Scope, first_us: int | None, zone: ReportingZone, width: int) -> Scope:
    """Return the part that the books cover whole: days before them were not $0, but unknown."""
    if first_us is None or first_us <= scope.start_us:
        return scope
    whole_us = zone.day(first_us)[1] if width == DAY_US else -(-first_us // width) * width
    return replace(scope, start_us=min(whole_us, scope.end_us))


def _whole_buckets(zone: ReportingZone, scope: Scope, width: int) -> list[int]:
    """Return the starts of whole days of the reporting zone, or of whole hours."""
    if width == DAY_US:
        return [day.start_us for day in zone.days(scope) if zone.day(day.start_us) == (
            day.start_us, day.end_us,
        )]  # fmt: skip
    return list(range(-(-scope.start_us // width) * width, scope.end_us - width + 1, width))


def _anomaly_name(anomaly: Anomaly, width: int, zone: ReportingZone) -> str:
    return f"{anomaly.name}, {_when(anomaly.start_us, width, zone)}"


def _anomaly_text(anomaly: Anomaly) -> str:
    """Return its amount next to the usual one."""
    usual = formatting.money(anomaly.usual_pusd)
    return f"{formatting.money(anomaly.pusd)} (usual {usual})"


def _when(start_us: int, width_us: int, zone: ReportingZone) -> str:
    """Return a day of the reporting zone, or an hour of the viewer's zone."""
    if width_us == DAY_US:
        return f"{zone.date_of(start_us):%d %b}"
    return formatting.moment(start_us)


def by_hour(view: DashboardView) -> None:
    """Draw mean spending by weekday and hour in the viewer's zone."""
    sums = Counter[tuple[int, int]]()
    counts = Counter[tuple[int, int]]()
    for at_us in range(view.scope.start_us, view.scope.end_us, HOUR_US):
        at = formatting.local(at_us)
        counts[at.weekday(), at.hour] += 1
    for at_us, pusd in tags.spent_by_hour(view).items():
        at = formatting.local(at_us)
        sums[at.weekday(), at.hour] += pusd
    records = [
        {"day": day, "hour": hour, "usd": dollars(sums[day, hour] / count)}
        for (day, hour), count in sorted(counts.items())
    ]
    if not records or not sums:
        st.caption("Nothing was spent.")
        return
    theme.chart(spend.week(records), about="spend")
    st.caption(
        f"Mean spending of each hour of the week, {display.now().zone}; own engines at their "
        "provisional charge."
    )


def by_tag(view: DashboardView) -> None:
    """Draw sums by tag on request: for older periods every attempt is read."""
    if not st.toggle("Add up by tag", key="tags"):
        return
    with st.spinner("Reading tags ..."):
        found = tags.tagged(view)
    if not found:
        st.info(
            "No request of this period carries a tag. `breakeven keys create --tag app=web` marks "
            "what a key asks for.",
            icon=":material/sell:",
        )
        return
    table = [
        {
            "tag": use.tag,
            "spend": shown_amount(use.cost_pusd),
            "attempts": use.attempts,
            "input tokens": use.input_tokens,
            "output tokens": use.output_tokens,
        }
        for use in found
    ]
    counts = st.column_config.NumberColumn(format="localized")
    columns = dict.fromkeys(("attempts", "input tokens", "output tokens"), counts)
    columns |= money_columns(table, ("spend",))
    theme.table(table, about="tag", column_config=columns)
    st.caption(
        "A request with two tags counts under each; own engines at their provisional charge."
    )
