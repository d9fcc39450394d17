"""Altair charts: each takes plain records and returns a chart in the dashboard's palette.

Charts draw the given values; the only arithmetic here is the choice of axis formats.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import cycle
from typing import Any

import altair as alt

from dashboard import formatting
from dashboard.charts.axes import (
    LEGEND_LINE,
    TIME,
    Chart,
    Records,
    amount,
    axis_of,
    clean,
    colour_encoding,
    dollar_text,
    inline_data,
    legend_height,
    markers,
    money_unit,
    time_axis,
)
from dashboard.theme import ADJUSTED, API, DOWN, OPS, OWN, SAME_WEIGHTS, SUBSTITUTE, inks
from ledger.reports.series import SpendSeries

# Distinct for every kind of color vision: computed in tests/dashboard/test_theme.py.
PALETTE = (OWN, API, SUBSTITUTE, SAME_WEIGHTS, OPS, "#C8ACE4", "#20C890", "#902090")
SHARE = ".0%"
SHORT = ".3~s"  # 1.2M
FEW = 0.04  # four ticks of whole percents need more
HEIGHT = 300
PLOT = 200  # of lines, without their legends
DASHES = ([1, 0], [5, 4], [1.5, 3], [9, 3, 2, 3])
GAP = 0.12  # of a bar, between it and the next


def money_colours(own: str = formatting.GPU.many, *, adjusted: bool = False) -> dict[str, str]:
    """Return the colors of cost series by name; `own` is the name of the own hardware.

    `adjusted` adds the series of posted adjustments.
    """
    lines = {
        SpendSeries.USED: OWN,
        SpendSeries.IDLE: inks().idle,
        SpendSeries.UNAVAILABLE: DOWN,
        SpendSeries.OPS: OPS,
        SpendSeries.API: API,
    }
    if adjusted:
        lines[SpendSeries.ADJUSTED] = ADJUSTED
    return {key.value.replace(formatting.GPU.many, own): colour for key, colour in lines.items()}


def stacked_chart(
    records: Records,
    *,
    value: str,
    colours: Mapping[str, str],
    title: str,
    money: bool = True,
    marks: Records = (),
) -> Chart:
    """Return bars over time of `at`, `until`, `kind` and a value, stacked by `colours`.

    `marks` are times (`at`) with a `label` and a tooltip (`told`).
    """
    order = {kind: place for place, kind in enumerate(colours)}
    ends = [record["at"] for record in records] + [record["until"] for record in records]
    chart = (
        alt.Chart(
            inline_data(_pile_records(records, value, order, money=money)),
            height=HEIGHT + legend_height(colours),
        )
        .mark_rect(cornerRadius=1)
        .encode(
            x=time_axis("left", ends),
            x2=alt.X2("right:T"),
            y=alt.Y("low:Q", title=_title_of(title, money=money), axis=axis_of(money=money)),
            y2=alt.Y2("high:Q"),
            color=colour_encoding(colours),
            tooltip=[
                alt.Tooltip(
                    "utcyearmonthdatehoursminutes(at):T",
                    title=formatting.zoned("from"),
                    format=TIME,
                ),
                alt.Tooltip("kind:N", title="what"),
                alt.Tooltip("shown:N", title=_title_of(title, money=money)),
            ],
        )
    )
    return clean(_with_marks(chart, marks, ends))


def _with_marks(chart: Chart, marks: Records, instants: Sequence[datetime]) -> Chart:
    """Return the chart with dashed lines and labels at the marks within its range."""
    seen = [mark for mark in marks if min(instants) <= mark["at"] <= max(instants)]
    if not seen:
        return chart
    return alt.layer(chart, *markers(seen, time_axis("at", instants)))


def _pile_records(
    records: Records, value: str, order: Mapping[str, int], *, money: bool
) -> list[dict[str, Any]]:
    """Return each record as a box over its time, stacked on the earlier kinds.

    Boxes scale with the plot; bars of fixed pixels would overlap on a phone.
    """
    heights: dict[datetime, float] = {}
    found = []
    for record in sorted(records, key=lambda entry: order[entry["kind"]]):
        gap = (record["until"] - record["at"]) * GAP / 2
        low = heights.get(record["at"], 0.0)
        heights[record["at"]] = high = low + (amount(record[value]) if money else record[value])
        found.append(
            {
                **record,
                "order": order[record["kind"]],
                "shown": dollar_text(record[value])
                if money
                else formatting.count(round(record[value])),
                "left": record["at"] + gap,
                "right": record["until"] - gap,
                "low": low,
                "high": high,
            }
        )
    return found


def _title_of(title: str, *, money: bool) -> str:
    return money_unit(title) if money else title


def lines(
    records: Records,
    *,
    value: str,
    title: str,
    form: str = ",.0f",
    kinds: Sequence[str] = (),
    marks: Records = (),
) -> Chart:
    """Return lines over time, one per `kind`; `marks` as in `stacked_chart`.

    Records may have a `style`: the first style is solid, others of the same kind are dashed.
    """
    instants = [record["at"] for record in records]
    scale: Any = alt.Undefined
    step = 1.0 if form == ",.0f" else 0.001
    if form == SHARE:  # as precise as the ticks, otherwise several labels would be equal
        top = max(record[value] for record in records)
        form, step = (".1%", 0.001) if top < FEW else (SHARE, 0.01)
        scale = alt.Scale(domain=[0, max(top, 4 * step)])
    axis = alt.Axis(format=form, tickCount=4, tickMinStep=step)
    names = list(kinds) or sorted({record["kind"] for record in records})
    styles = list(dict.fromkeys(record["style"] for record in records if "style" in record))
    chart = (
        alt.Chart(inline_data(records), height=PLOT + legend_height(names) + _styles_height(styles))
        .mark_line(strokeWidth=2, interpolate="monotone")
        .encode(
            strokeDash=dash_encoding(styles),
            x=time_axis("at", instants),
            y=alt.Y(f"{value}:Q", title=title, axis=axis, scale=scale),
            color=colour_encoding(dict(zip(names, cycle(PALETTE), strict=False)), columns=2),
            tooltip=[
                alt.Tooltip(
                    "utcyearmonthdatehoursminutesseconds(at):T",
                    title=formatting.zoned("at"),
                    format=TIME,
                ),
                alt.Tooltip("kind:N", title="which"),
                *([alt.Tooltip("style:N", title="what")] if styles else []),
                alt.Tooltip(f"{value}:Q", title=title, format=form),
            ],
        )
    )
    return clean(_with_marks(chart, marks, instants))


def _styles_height(styles: Sequence[str]) -> int:
    return LEGEND_LINE if styles else 0


def dash_encoding(styles: Sequence[str]) -> Any:
    """Return the dash pattern that separates lines of one colour; empty without such lines."""
    if not styles:
        return alt.Undefined
    return alt.StrokeDash(
        "style:N",
        title=None,
        scale=alt.Scale(domain=list(styles), range=[*DASHES[: len(styles)]]),
        legend=alt.Legend(orient="top", symbolType="stroke", symbolSize=300, columns=2),
    )


def ranked_chart(records: Records, *, value: str, title: str, form: str, colour: str) -> Chart:
    """Return horizontal bars of `name` and a value, longest first, with their figures."""
    base = alt.Chart(inline_data(records), height=alt.Step(34)).encode(
        y=alt.Y("name:N", sort="-x", title=None, axis=alt.Axis(labelLimit=320, ticks=False)),
        x=alt.X(f"{value}:Q", title=title, axis=alt.Axis(format=form, tickCount=4)),
        tooltip=[
            alt.Tooltip("name:N", title="what"),
            alt.Tooltip(f"{value}:Q", title=title, format=form),
        ],
    )
    bars = base.mark_bar(color=colour, cornerRadiusEnd=3, height=18)
    texts = base.mark_text(align="left", dx=5, color=inks().muted, fontSize=12).encode(
        text=alt.Text(f"{value}:Q", format=form)
    )
    return clean(bars + texts)


def predictions(records: Records) -> Chart:
    """Return predicted against observed seconds; on the diagonal a prediction was exact."""
    seconds = [record[name] for record in records for name in ("predicted", "observed")]
    top, low = max(seconds), max(1e-3, min(seconds))
    scale = alt.Scale(type="log", domain=[low / 1.2, top * 1.2], nice=False)
    axis = alt.Axis(format="~g", tickCount=6)
    dots = (
        alt.Chart(inline_data(records))
        .mark_circle(size=34, opacity=inks().dots)
        .encode(
            x=alt.X("predicted:Q", title="predicted, seconds", scale=scale, axis=axis),
            y=alt.Y("observed:Q", title="observed, seconds", scale=scale, axis=axis),
            color=colour_encoding({"own engine": OWN, "API": API}),
            tooltip=[alt.Tooltip("target:N"), alt.Tooltip("predicted:Q", format=".3f"),
                     alt.Tooltip("observed:Q", format=".3f")],
        )
    )  # fmt: skip
    diagonal = inline_data({"predicted": end, "observed": end} for end in (low, top))
    line = (
        alt.Chart(diagonal)
        .mark_line(color=inks().muted, strokeDash=[4, 4], strokeWidth=1)
        .encode(x=alt.X("predicted:Q", scale=scale), y=alt.Y("observed:Q", scale=scale))
    )
    return clean((line + dots).properties(height=330))
