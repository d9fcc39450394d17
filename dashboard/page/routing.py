"""Routing page: targets over time, causes of spill, and accuracy of predictions.

A spill is a request for an own model that an API answered; its reason is why the own engine was not
used. Refused requests have no attempt and are shown separately.
"""

from collections import Counter
from typing import Any

import streamlit as st

from dashboard import formatting, theme
from dashboard.charts import axes, plots
from dashboard.data import fleet, reads
from dashboard.data.reads import DashboardView
from dashboard.figures import labels, records_over_time, slo_share
from dashboard.sections.enginelines import gauge
from ledger.money import PUSD_PER_USD
from ledger.reports.survey import Survey

PAIRS = 600
SECONDS_OF_AN_HOUR = 3_600


def show(view: DashboardView) -> None:
    survey = reads.spending(view)
    theme.label(*labels(survey))
    for override in fleet.overrides(view) if view.viewer.sees_house else ():
        theme.label(formatting.override_text(override))
    if not survey.cells:
        st.info(
            "No requests in this period, so nothing was routed. Choose a longer one, or send a "
            "request.",
            icon=":material/alt_route:",
        )
        return
    _totals(survey, sum(row.requests for row in reads.refusals(view)))
    st.subheader("Who answered, over time", anchor=False)
    colours = {"own engines": theme.OWN, "APIs, spilled": theme.API, "APIs, by choice": "#F3D3A6"}
    records = records_over_time(
        survey,
        lambda sums: _destination(sums.backend, spilled=sums.spilled),
        lambda sums: sums.attempts,
    )
    marks = _policies(view) if view.viewer.sees_house else []
    theme.chart(
        plots.stacked_chart(
            records, value="value", colours=colours, title="requests", money=False, marks=marks
        ),
        about="routing",
    )
    if marks:
        st.caption("Dashed: policies put in force, by `breakeven policy` or the admin API.")
    left, right = st.columns(2)
    with left:
        st.subheader("Why requests spilled", anchor=False)
        _spills(survey)
    with right:
        st.subheader("Time to first token: predicted and observed", anchor=False)
        _predictions(view)
    if view.viewer.sees_house:
        _show_market(view, marks)
    _refusals(view)


def _policies(view: DashboardView) -> list[dict[str, Any]]:
    """Return the policy sets activated in the period, oldest first."""
    return [
        {
            "at": formatting.instant(stored.recorded_us),
            "label": f"v{stored.number}",
            "told": f"policies {stored.number} by {stored.actor}"
            + (f": {stored.note}" if stored.note else ""),
        }
        for stored in reversed(fleet.policy_sets(view))
    ]


def _show_market(view: DashboardView, marks: list[dict[str, Any]]) -> None:
    """Draw the bid price of engine time, and the free share of the KV cache."""
    _, history, _ = fleet.engines(view)
    an_hour = axes.amount(SECONDS_OF_AN_HOUR / PUSD_PER_USD)
    prices = gauge(history, "bid_price_pusd_per_s", an_hour)
    free = gauge(history, "kv_usage_ppm", -1e-6, offset=1.0)
    left, right = st.columns(2)
    for column, title, records, unit, form in (
        (left, "Bid price of an engine's time", prices, axes.money_unit("dollars an hour"), "~g"),
        (right, "KV cache headroom, at its lowest", free, "share that is free", plots.SHARE),
    ):
        with column:
            st.subheader(title, anchor=False)
            if not records:
                st.caption("No engine said so in this period.")
                continue
            theme.chart(
                plots.lines(records, value="value", title=unit, form=form, marks=marks),
                about="engine",
            )
    st.caption(
        "The bid price is what a request must save at an API to be worth the time of a full "
        "engine; the emptier one is, the less it asks. It is read off the demand, 0 while there "
        "is room for all, or fixed by the configuration (`bid_price_usd_per_s`: a flat line). "
        "Below the headroom floor of a policy, requests spill."
    )


def _destination(backend: str, *, spilled: bool) -> str:
    if backend == "own":
        return "own engines"
    return "APIs, spilled" if spilled else "APIs, by choice"


def _totals(survey: Survey, refused: int) -> None:
    counts = Counter[str]()
    for moment in survey.moments:
        counts[_destination(moment.backend, spilled=moment.spilled)] += moment.attempts
    total = counts.total()
    spilled = counts["APIs, spilled"]
    own = counts["own engines"]
    figures = (
        ("Requests", formatting.count(total), "attempts at targets, retries included"),
        ("On own engines", formatting.percent(own / total), f"{formatting.count(own)} requests"),
        (
            "Spilled to APIs",
            formatting.percent(spilled / (own + spilled or 1), digits=1),
            f"{formatting.count(spilled)} of those that own engines serve",
        ),
        (
            "Answers inside the SLO",
            formatting.percent(slo_share(survey.cells, None), digits=1),
            " and ".join(
                f"{name} {formatting.percent(slo_share(survey.cells, backend), digits=1)}"
                for name, backend in (("own", "own"), ("APIs", "api"))
            )
            + _beside(survey, refused),
        ),
    )
    for column, (name, figure, more) in zip(st.columns(4), figures, strict=True):
        with column:
            theme.card(name, theme.big(figure, size="mid"), theme.small(more), about="routing")


def _beside(survey: Survey, refused: int) -> str:
    """Return a note on refused requests, which a share of answers omits."""
    if not refused:
        return ""
    share = formatting.percent(slo_share(survey.cells, None, refused=refused), digits=1)
    return f"; {share} with {formatting.count(refused)} refused as missed"


def _spills(survey: Survey) -> None:
    counts = Counter[str]()
    money = Counter[str]()
    for cell in survey.cells:
        if cell.spill_reason is not None:
            counts[cell.spill_reason] += cell.attempts
            money[cell.spill_reason] += cell.cost_pusd
    if not counts:
        st.info("Nothing spilled in this period.", icon=":material/check_circle:")
        return
    records = [{"name": formatting.reason(code), "value": n} for code, n in counts.most_common()]
    theme.chart(
        plots.ranked_chart(records, value="value", title="requests", form=",.0f", colour=theme.API),
        about="routing",
    )
    paid = formatting.money(sum(money.values())).replace("$", "\\$")
    st.caption(f"Spilled requests cost {paid} at APIs.")


def _predictions(view: DashboardView) -> None:
    pairs = reads.ttft_pairs(view, PAIRS)
    if not pairs:
        st.info(
            "No streamed answer in this period. Only a stream shows when its first token came "
            '(`"stream": true`); answers in one piece are not compared.',
            icon=":material/timer:",
        )
        return
    records = [
        {
            "target": pair.target,
            "kind": "own engine" if pair.backend == "own" else "API",
            "predicted": max(pair.ttft_predicted_us, 1_000) / 1e6,
            "observed": max(pair.ttft_us, 1_000) / 1e6,
        }
        for pair in pairs
    ]
    theme.chart(plots.predictions(records), about="routing")
    late = sum(pair.ttft_us > pair.ttft_predicted_us for pair in pairs)
    st.caption(
        f"The latest {len(pairs)} streamed answers; {formatting.percent(late / len(pairs))} "
        "came later "
        "than predicted (above the dashed line)."
    )


def _refusals(view: DashboardView) -> None:
    found = reads.refusals(view)
    if not found:
        return
    st.subheader("Refused before any attempt", anchor=False)
    frame = [
        {
            "requests": row.requests,
            "why": formatting.reason(row.reason),
            "model": row.model,
            "team": row.team,
            "budget or limit": row.scope or "",
            "HTTP status": row.http_status,
        }
        for row in found
    ]
    theme.table(frame, about="refused")
