"""Proposed price changes, in percent."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from dashboard.charts.axes import Chart, Records, clean, inline_data
from dashboard.theme import API, OWN, inks

MOST = 16  # bars
FURTHEST = 200.0  # percent; larger changes are cut there, with the true figure as label


def moved_prices(entries: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the prices that change most: `name` (with kind), `percent` as drawn, `shown`."""
    found = [
        (f"{entry['name']}, {price['kind']}", float(price["percent"]))
        for entry in entries
        for price in entry["prices"]
        if price["percent"] and price["tier"] == "standard" and not price["above_tokens"]
    ]
    found.sort(key=lambda finding: (-abs(finding[1]), finding[0]))
    return [
        {"name": name, "percent": max(-100.0, min(FURTHEST, percent)), "shown": f"{percent:+.4g} %",
         "dearer": percent > 0}
        for name, percent in found[:MOST]
    ]  # fmt: skip


def changes_chart(records: Records) -> Chart:
    names = [record["name"] for record in records]
    base = alt.Chart(inline_data(records), height=alt.Step(28)).encode(
        y=alt.Y("name:N", sort=names, title=None, axis=alt.Axis(labelLimit=230, ticks=False)),
        x=alt.X(
            "percent:Q",
            title="change in percent",
            scale=alt.Scale(padding=46),
            axis=alt.Axis(tickCount=5),
        ),
        tooltip=[
            alt.Tooltip("name:N", title="price of"),
            alt.Tooltip("shown:N", title="change"),
        ],
    )
    bars = base.mark_bar(height=15, cornerRadius=2).encode(
        color=alt.condition("datum.dearer", alt.value(API), alt.value(OWN))
    )
    texts = base.encode(text=alt.Text("shown:N"))
    right = texts.transform_filter("datum.dearer").mark_text(
        align="left", dx=5, color=inks().muted, fontSize=12
    )
    left = texts.transform_filter("!datum.dearer").mark_text(
        align="right", dx=-5, color=inks().muted, fontSize=12
    )
    return clean(alt.layer(bars, left, right))
