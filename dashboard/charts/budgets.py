"""Budgets as bars in shares of their limits: spent, held, claimed.

A tick marks the forecast at the end of the window.
"""

import altair as alt

from dashboard.charts.axes import Chart, Records, clean, colour_encoding, inline_data, money_unit
from dashboard.theme import API, API_DEEP, DOWN, OWN, inks

SPENT, HELD, CLAIMED, OVER = "spent", "held", "claimed", "over the limit"
MOST = 2.0  # times the limit, where bars are cut


def bars(records: Records) -> Chart:
    """Return bars of `name`, `kind`, `low` and `high` in shares of the limit, with `forecast`."""
    names = list(dict.fromkeys(record["name"] for record in records))
    end = max([1.05, *(record["high"] for record in records)])
    end = min(MOST, max([end, *(1.05 * (record["forecast"] or 0) for record in records)]))
    base = alt.Chart(inline_data(records), height=alt.Step(30))
    colours = {SPENT: OWN, HELD: inks().idle, CLAIMED: API_DEEP, OVER: DOWN}
    y = alt.Y("name:N", sort=names, title=None, axis=alt.Axis(labelLimit=190, ticks=False))
    x = alt.X(
        "low:Q",
        title="share of the limit",
        axis=alt.Axis(format=".0%", tickCount=5),
        scale=alt.Scale(domain=[0, end], nice=False, clamp=True),
    )
    told = [
        alt.Tooltip("name:N", title="budget"),
        alt.Tooltip("kind:N", title="what"),
        alt.Tooltip("shown:N", title=money_unit("dollars")),
        alt.Tooltip("limit:N", title="limit"),
        alt.Tooltip("told:N", title="forecast to the window's end"),
    ]
    drawn = base.mark_bar(height=16, cornerRadius=2).encode(
        x=x, x2=alt.X2("high:Q"), y=y, color=colour_encoding(colours, columns=1), tooltip=told
    )
    seen = base.transform_filter("isValid(datum.forecast)")
    tick = seen.mark_tick(thickness=3, size=24, color=API).encode(
        x=alt.X("forecast:Q", scale=alt.Scale(domain=[0, end], nice=False, clamp=True)),
        y=y, tooltip=told,
    )  # fmt: skip
    limit = (
        alt.Chart(inline_data([{"at": 1.0}]))
        .mark_rule(color=inks().ink, strokeWidth=1.5)
        .encode(x=alt.X("at:Q"))
    )
    return clean(alt.layer(drawn, tick, limit))
