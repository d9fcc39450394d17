"""Fleet page: planned number of engines in dollars, changes, and what scaling earned."""

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add
from typing import Any

import streamlit as st

from dashboard import formatting, theme
from dashboard.charts import plots
from dashboard.data import scaling
from dashboard.data.reads import DashboardView
from dashboard.data.scaling import ScaledPool
from dashboard.figures import money_columns, shown_amount, time_column
from ledger.economics.scaling_score import ScoredSpan
from ledger.fleet.fleet_records import FleetInstance, FleetPlanRecord
from ledger.reports.scaling_read import EarnedDay
from ledger.spans import HOUR_US, Scope

SHOWN_CHANGES = 200


def show(view: DashboardView) -> None:
    found = scaling.scaled_fleets(view)
    if not found:
        st.info(
            "No pool sizes itself. `pools.NAME.scale: {max: 4}` has engines planned by what they "
            "earn beside their rent; it only advises until `mode: act`.",
            icon=":material/dynamic_feed:",
        )
        return
    for fleet in found:
        _pool(fleet, view)


def _pool(fleet: ScaledPool, view: DashboardView) -> None:
    st.subheader(f"Pool {fleet.pool}", anchor=False)
    plan = fleet.last
    if plan is None:
        st.info("No plan was made yet: what an engine can do is known once the pool has served.")
        return
    if plan.mode == "advise":
        theme.label("Advice only: no engine is started or stopped by this plan.")
    whole = whole_of(fleet.days)
    first, second, third = st.columns(3)
    with first:
        _now(plan, view.now_us)
    with second:
        _worth(plan)
    with third:
        _earned(plan, whole)
    _lines(fleet, view.scope.end_us)
    if fleet.days:
        _days(fleet.days)
    _plan_tables(plan)
    _changes(fleet)
    _instances(fleet, view)


def whole_of(days: Iterable[EarnedDay]) -> ScoredSpan | None:
    """Return the scored days of the period as one span."""
    spans = [day.span for day in days]
    return reduce(add, spans) if spans else None


def _now(plan: FleetPlanRecord, now_us: int) -> None:
    head = f"{plan.wanted} wanted, {plan.running} run"
    tone = "" if plan.wanted == plan.running else "be-warn"
    theme.card(
        "Engines",
        theme.big(head, tone=tone, size="mid"),
        theme.small(plan.sentence, f"Planned {formatting.ago(plan.at_us, now_us)}."),
        about="scaling",
    )


def _worth(plan: FleetPlanRecord) -> None:
    """Draw the value of the last wanted engine and of one more, with rent per hour."""
    pairs: list[tuple[str, str, str | None]] = []
    for name, label in (("last", "The last engine avoids"), ("next", "One more would avoid")):
        worth = plan.document[name]
        if worth is not None:
            pairs.append((f"{label} an hour", dollars(worth["value_pusd"]), theme.OWN))
            pairs.append(("and costs", dollars(worth["rent_pusd"]), theme.API))
    following = plan.document["next"]
    value = None if following is None else following["value_pusd"]
    head = "not known" if value is None else f"{dollars(value)} for one more"
    theme.card(
        "What an engine is worth", theme.big(head, size="mid"), theme.rows(*pairs), about="scaling"
    )


def _earned(plan: FleetPlanRecord, whole: ScoredSpan | None) -> None:
    if whole is None:
        theme.card(
            "What scaling earned", theme.big("nothing scored yet", size="mid"), about="scaling"
        )
        return
    advises = plan.mode == "advise"
    mine = whole.advised if advises else whole.ran
    saved = whole.as_configured.total_pusd - mine.total_pusd
    best, cost = whole.best_fixed
    theme.card(
        "What the advice would have earned" if advises else "What scaling earned",
        theme.big(
            formatting.money(saved, sign=True), tone="be-loss" if saved < 0 else "", size="mid"
        ),
        theme.small(
            f"less than {formatting.plural(whole.fixed_engines, 'engine')} at all times, over "
            f"{formatting.length(whole.covered_us)} that were scored"
        ),
        theme.rows(
            ("Rent", formatting.money(mine.rent_pusd), theme.OWN),
            ("APIs for what did not fit", formatting.money(mine.api_pusd), theme.API),
            ("All at APIs would cost", formatting.money(whole.all_api.total_pusd), None),
            (
                f"The best constant number ({best}), known afterwards",
                formatting.money(cost.total_pusd),
                None,
            ),
        ),
        about="scaling",
    )


def _lines(fleet: ScaledPool, end_us: int) -> None:
    records = engine_records(fleet.plans, end_us)
    if len(fleet.plans) < 2:
        return
    st.subheader("Plan and actual", anchor=False)
    theme.chart(plots.lines(records, value="value", title="engines"), about="scaling")
    bands = forecast_records(fleet.plans)
    if bands:
        st.subheader("Forecast, with its band", anchor=False)
        drawn = plots.lines(bands, value="value", title="requests/s", form=",.2~f")
        theme.chart(drawn, about="scaling")
        st.caption(
            "Requests a second that are expected when an engine asked for now would serve. Four "
            "fifths of what is expected lie inside of the band."
        )


def engine_records(kept: Iterable[FleetPlanRecord], end_us: int) -> list[dict[str, Any]]:
    """Return wanted and running engines over time, as steps."""
    found: list[dict[str, Any]] = []
    for kind, field in (("wanted by the plan", "wanted"), ("running", "running")):
        before: int | None = None
        for plan in sorted(kept, key=lambda item: item.at_us):
            at, value = formatting.instant(plan.at_us), getattr(plan, field)
            if before is not None:
                just_before = formatting.instant(plan.at_us - 1)
                found.append({"at": just_before, "kind": kind, "value": before})
            found.append({"at": at, "kind": kind, "value": value})
            before = value
        if before is not None:
            found.append({"at": formatting.instant(end_us), "kind": kind, "value": before})
    return found


def forecast_records(kept: Iterable[FleetPlanRecord]) -> list[dict[str, Any]]:
    """Return the forecast of all classes together, at its target time."""
    found = []
    for plan in sorted(kept, key=lambda item: item.at_us):
        bands = plan.document["forecast"]
        for part, kind in (("mean", "expected"), ("low", "low end"), ("high", "high end")):
            if bands:
                at_us = plan.at_us + round(bands[0]["horizon_s"] * 1e6)
                value = sum(band[part] for band in bands)
                found.append({"at": formatting.instant(at_us), "kind": kind, "value": value})
    return found


def _days(days: Sequence[EarnedDay]) -> None:
    st.subheader("What scaling earned by day", anchor="earned")
    rows = [day_row(day) for day in days]
    amounts = tuple(name for name in rows[0] if name not in ("day", "hours scored", "requests"))
    columns: dict[str, Any] = {}
    for name in amounts:
        columns |= money_columns(rows, (name,))
    theme.table(rows, about="scaling", column_config=columns)


def day_row(day: EarnedDay) -> dict[str, Any]:
    """Return a day's row; a negative amount is a loss by scaling."""
    span = day.span
    return {
        "day": day.date,
        "hours scored": round(span.covered_us / HOUR_US, 1),
        "requests": span.requests,
        "what ran": shown_amount(span.ran.total_pusd),
        "fixed fleet": shown_amount(span.as_configured.total_pusd),
        "all at APIs": shown_amount(span.all_api.total_pusd),
        "less than fixed": shown_amount(day.against_fixed_pusd),
        "less than all API": shown_amount(day.against_api_pusd),
        "advice would save": shown_amount(day.advice_pusd),
    }


def _plan_tables(plan: FleetPlanRecord) -> None:
    weighed = plan.document["alternatives"]
    if not weighed:
        return
    horizon = formatting.length(round(plan.document["horizon_s"] * 1e6))
    st.subheader(f"What each number is expected to cost in {horizon}", anchor=False)
    rows = [alternative_row(item, plan.wanted) for item in weighed]
    columns: dict[str, Any] = {}
    for name in ("rent", "APIs", "starts", "all"):
        columns |= money_columns(rows, (name,))
    theme.table(rows, about="scaling", column_config=columns)


def alternative_row(item: dict[str, int], wanted: int) -> dict[str, Any]:
    """Return one number of engines with its expected cost."""
    parts = ("rent_pusd", "api_pusd", "start_pusd")
    rent, api, start = (item[part] for part in parts)
    return {
        "engines": item["engines"],
        "rent": shown_amount(rent),
        "APIs": shown_amount(api),
        "starts": shown_amount(start),
        "all": shown_amount(rent + api + start),
        "": "wanted" if item["engines"] == wanted else "",
    }


def _changes(fleet: ScaledPool) -> None:
    st.subheader("Changes", anchor="changes")
    if not fleet.changes:
        st.caption("Nothing was started or stopped in this period, nor was it advised.")
        return
    newest = fleet.changes[0]
    st.caption(f"The newest one, a {newest.verb}: {newest.sentence.rstrip('.')}.")
    rows = [
        {
            formatting.zoned("at"): formatting.instant(item.at_us),
            "change": item.verb,
            "engine": item.engines,
            "expected": None if item.expected_pusd is None else shown_amount(item.expected_pusd),
            "realised": shown_amount(item.realised_pusd),
            "outcome": item.outcome or ("advice" if item.mode == "advise" else "under way"),
            "why": item.sentence,
        }
        for item in fleet.changes[:SHOWN_CHANGES]
    ]
    columns: dict[str, Any] = {formatting.zoned("at"): time_column()}
    for name in ("expected", "realised"):
        columns |= money_columns(rows, (name,))
    theme.table(rows, about="scaling", column_config=columns)


def _instances(fleet: ScaledPool, view: DashboardView) -> None:
    if not fleet.instances:
        return
    st.subheader("Engines by their hours", anchor="engines")
    rows = [instance_row(row, view.scope) for row in reversed(fleet.instances)]
    columns: dict[str, Any] = {
        name: time_column() for name in ("asked for", "served", "ended")
    } | money_columns(rows, ("rent in this period",))
    theme.table(rows, about="scaling", column_config=columns)


def instance_row(row: FleetInstance, scope: Scope) -> dict[str, Any]:
    """Return an engine with the rent due in a period."""
    return {
        "token": row.token,
        "asked for": formatting.instant(row.asked_us),
        "served": None if row.ready_us is None else formatting.instant(row.ready_us),
        "ended": None if row.gone_us is None else formatting.instant(row.gone_us),
        "rent in this period": shown_amount(row.rent_pusd(scope.start_us, scope.end_us)),
        "": "" if row.owned else "no plan asked for it",
    }


def dollars(pusd: int | None) -> str:
    """Return an amount, or "not known"."""
    return "not known" if pusd is None else str(formatting.money(pusd))
