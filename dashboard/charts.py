"""Altair charts: each takes plain records and returns a chart in the dashboard's palette.

Charts draw what they are given; the only arithmetic here is choosing an axis format.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import altair as alt

from dashboard import words
from dashboard.look import (
    API,
    DOWN,
    IDLE,
    OWN,
    SAME_WEIGHTS,
    SUBSTITUTE,
    inks,
)
from ledger.money import PUSD_PER_USD
from ledger.reports.series import Line

MONEY_COLOURS: Mapping[str, str] = {
    Line.USED.value: OWN,
    Line.IDLE.value: IDLE,
    Line.UNAVAILABLE.value: DOWN,
    Line.API.value: API,
}
# Told apart by every kind of colour vision: tests/dashboard/test_look.py computes it.
PALETTE = (OWN, API, SUBSTITUTE, SAME_WEIGHTS, "#745820", "#C8ACE4", "#20C890", "#902090")
Records = Sequence[Mapping[str, Any]]
Chart = Any  # Altair's charts, layers and concatenations have no common public type
SHARE = ".0%"
SHORT = ".3~s"  # 1.2M
LONG = 20  # characters of a legend's name; two of them fit beside each other on a phone
FEW = 0.04  # four ticks of whole percents need more
HEIGHT = 300
LEGEND_LINE = 20  # pixels
GAP = 0.12  # of a bar, between it and the next
_TIME = "%d %b %H:%M"
MOST_TICKS = 10
_STEPS_S = (1, 5, 15, 30, 60, 300, 900, 1_800, 3_600, 10_800, 21_600, 43_200,
            86_400, 172_800, 432_000, 864_000)  # fmt: skip


def money_colours(own: str) -> dict[str, str]:
    """By the names of the lines; `own` is what the own hardware is called."""
    return {name.replace(words.GPU.many, own): colour for name, colour in MONEY_COLOURS.items()}


def stacked(
    records: Records,
    *,
    value: str,
    colours: Mapping[str, str],
    title: str,
    money: bool = True,
    marks: Records = (),
) -> Chart:
    """Bars over time: `at`, `kind` and a value; kinds stack in the order of `colours`.

    `marks` are instants (`at`) with a `label` and what is told of them (`told`).
    """
    order = {kind: place for place, kind in enumerate(colours)}
    ends = [record["at"] for record in records] + [record["until"] for record in records]
    chart = (
        alt.Chart(inline(_piled(records, value, order, money=money)), height=HEIGHT)
        .mark_rect(cornerRadius=1)
        .encode(
            x=time_axis("left", ends),
            x2="right:T",
            y=alt.Y("low:Q", title=title, axis=axis_of(money=money)),
            y2="high:Q",
            color=coloured(colours),
            tooltip=[
                alt.Tooltip("utcyearmonthdatehoursminutes(at):T", title="from (UTC)", format=_TIME),
                alt.Tooltip("kind:N", title="what"),
                alt.Tooltip("shown:N", title=title),
            ],
        )
    )
    return clean(_marked(chart, marks, ends))


def _marked(chart: Chart, marks: Records, instants: Sequence[datetime]) -> Chart:
    """With a dashed line and its label where something changed."""
    seen = [one for one in marks if min(instants) <= one["at"] <= max(instants)]
    if not seen:
        return chart
    now = inks()
    base = alt.Chart(inline(seen)).encode(
        x=time_axis("at", instants),
        tooltip=[
            alt.Tooltip("utcyearmonthdatehoursminutes(at):T", title="at (UTC)", format=_TIME),
            alt.Tooltip("told:N", title="what"),
        ],
    )
    rules = base.mark_rule(color=now.ink, strokeDash=[3, 3], strokeWidth=1)
    texts = base.mark_text(align="left", baseline="top", dx=4, color=now.ink, fontSize=12).encode(
        y=alt.value(0), text="label:N"
    )
    return alt.layer(chart, rules, texts)


def _piled(
    records: Records, value: str, order: Mapping[str, int], *, money: bool
) -> list[dict[str, Any]]:
    """Each as a box over its time, on top of those before it: as wide as the plot makes it.

    Bars of so many pixels would overlap on a phone.
    """
    heights: dict[datetime, float] = {}
    found = []
    for record in sorted(records, key=lambda one: order[one["kind"]]):
        gap = (record["until"] - record["at"]) * GAP / 2
        low = heights.get(record["at"], 0.0)
        heights[record["at"]] = high = low + record[value]
        found.append(
            {
                **record,
                "order": order[record["kind"]],
                "shown": dollar_text(record[value]) if money else words.count(round(record[value])),
                "left": record["at"] + gap,
                "right": record["until"] - gap,
                "low": low,
                "high": high,
            }
        )
    return found


def lines(
    records: Records,
    *,
    value: str,
    title: str,
    form: str = ",.0f",
    kinds: Sequence[str] = (),
    marks: Records = (),
) -> Chart:
    """Lines over time, one of each `kind`; `marks` as `stacked` has them."""
    instants = [record["at"] for record in records]
    scale: Any = alt.Undefined
    step = 1.0 if form == ",.0f" else 0.001
    if form == SHARE:  # as fine as its ticks, or several would read alike
        top = max(record[value] for record in records)
        form, step = (".1%", 0.001) if top < FEW else (SHARE, 0.01)
        scale = alt.Scale(domain=[0, max(top, 4 * step)])
    axis = alt.Axis(format=form, tickCount=4, tickMinStep=step)
    names = list(kinds) or sorted({record["kind"] for record in records})
    chart = (
        alt.Chart(inline(records), height=210)
        .mark_line(strokeWidth=2, interpolate="monotone")
        .encode(
            x=time_axis("at", instants),
            y=alt.Y(f"{value}:Q", title=title, axis=axis, scale=scale),
            color=coloured(dict(zip(names, PALETTE, strict=False)), columns=2),
            tooltip=[
                alt.Tooltip(
                    "utcyearmonthdatehoursminutesseconds(at):T", title="at (UTC)", format=_TIME
                ),
                alt.Tooltip("kind:N", title="which"),
                alt.Tooltip(f"{value}:Q", title=title, format=form),
            ],
        )
    )
    return clean(_marked(chart, marks, instants))


def ranked(records: Records, *, value: str, title: str, form: str, colour: str) -> Chart:
    """Horizontal bars, longest first, with their figures: `name` and a value."""
    base = alt.Chart(inline(records), height=alt.Step(34)).encode(
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
    """Predicted against observed seconds; on the diagonal a prediction was right."""
    seconds = [record[name] for record in records for name in ("predicted", "observed")]
    top, low = max(seconds), max(1e-3, min(seconds))
    scale = alt.Scale(type="log", domain=[low / 1.2, top * 1.2], nice=False)
    axis = alt.Axis(format="~g", tickCount=6)
    dots = (
        alt.Chart(inline(records))
        .mark_circle(size=34, opacity=0.5)
        .encode(
            x=alt.X("predicted:Q", title="predicted, seconds", scale=scale, axis=axis),
            y=alt.Y("observed:Q", title="observed, seconds", scale=scale, axis=axis),
            color=coloured({"own engine": OWN, "API": API}),
            tooltip=["target:N", alt.Tooltip("predicted:Q", format=".3f"),
                     alt.Tooltip("observed:Q", format=".3f")],
        )
    )  # fmt: skip
    diagonal = inline({"predicted": end, "observed": end} for end in (low, top))
    line = (
        alt.Chart(diagonal)
        .mark_line(color=inks().muted, strokeDash=[4, 4], strokeWidth=1)
        .encode(x=alt.X("predicted:Q", scale=scale), y=alt.Y("observed:Q", scale=scale))
    )
    return clean((line + dots).properties(height=330))


def break_even(
    costs: Records, *, colours: Mapping[str, str], marks: Records, limit: float | None, basis: str
) -> Chart:
    """Cost against volume. `costs`: volume (tokens), usd, kind; `marks`: points with a label."""
    axis_x = alt.X(
        "volume:Q",
        title=f"tokens a month ({basis})",
        axis=alt.Axis(labelExpr="replace(format(datum.value, '~s'), 'G', 'B')", tickCount=8),
        scale=alt.Scale(nice=False),
    )
    axis_y = alt.Y("usd:Q", title="dollars a month", axis=axis_of(money=True))
    end = max(record["volume"] for record in costs)
    layers: list[Any] = []
    if limit is not None and limit < end:
        layers.append(
            alt.Chart(inline([{"from": limit, "to": end}]))
            .mark_rect(color=DOWN, opacity=0.08)
            .encode(x=alt.X("from:Q"), x2="to:Q")
        )
    layers.append(
        alt.Chart(inline(_priced(costs)))
        .mark_line(strokeWidth=2.5, clip=True)
        .encode(
            x=axis_x,
            y=axis_y,
            color=coloured(colours),
            strokeDash=alt.StrokeDash(
                "dash:N", legend=None, scale=alt.Scale(domain=["no", "yes"], range=[[1, 0], [6, 4]])
            ),
            tooltip=[
                alt.Tooltip("kind:N", title="line"),
                alt.Tooltip("volume:Q", title="tokens a month", format=",.0f"),
                alt.Tooltip("shown:N", title="a month"),
            ],
        )
    )
    now = inks()
    points = alt.Chart(inline(_priced(marks))).encode(x=axis_x, y=axis_y)
    dots = points.mark_point(size=150, filled=True, color=inks().ink, opacity=1).encode(
        shape=alt.Shape(
            "sort:N",
            legend=None,
            scale=alt.Scale(domain=["here", "even"], range=["circle", "diamond"]),
        ),
        tooltip=[
            "label:N",
            alt.Tooltip("volume:Q", title="tokens a month", format=",.0f"),
            alt.Tooltip("shown:N", title="a month"),
        ],
    )  # fmt: skip
    texts = [  # twice: an outline under the words keeps them readable on lines
        points.transform_filter(alt.datum.sort == sort)
        .mark_text(align="left", dx=9, dy=dy, fontSize=13, fontWeight=600, **outline)
        .encode(text="label:N")
        for sort, dy in (("here", 17), ("even", -15))
        for outline in (
            {"stroke": now.card, "strokeWidth": 5, "color": now.card},
            {"color": now.ink},
        )
    ]
    height = 400 + LEGEND_LINE * len(colours)  # the plot keeps its height below its legend
    return clean(alt.layer(*layers, dots, *texts).properties(height=height))


def _priced(records: Records) -> Records:
    return [{**record, "shown": dollar_text(record["usd"])} for record in records]


def dollar_text(usd: float) -> str:
    """An amount in a tooltip, where a format of Vega would round a small one to nothing."""
    return words.usd(round(usd * PUSD_PER_USD))


def inline(records: Iterable[Mapping[str, Any]]) -> alt.InlineData:
    """Inline values; instants as epoch milliseconds, which Vega reads alike on both ends."""
    values = [
        {
            name: value.timestamp() * 1000 if isinstance(value, datetime) else value
            for name, value in record.items()
        }
        for record in records
    ]
    return alt.InlineData(values=values)


def coloured(colours: Mapping[str, str], *, columns: int = 2) -> alt.Color:
    """A legend does not wrap by itself: long names stand below each other, or a phone cuts them."""
    columns = 1 if any(len(name) > LONG for name in colours) else columns
    return alt.Color(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=list(colours), range=list(colours.values())),
        legend=alt.Legend(orient="top", labelLimit=320, symbolType="square", columns=columns),
    )


def axis_of(*, money: bool) -> alt.Axis:
    """Thousands are k; below one in full, because a milli would read as a million."""
    sign = "$" if money else ""
    small = f"abs(datum.value) < 1 ? format(datum.value, '{sign}.2~r')"
    return alt.Axis(labelExpr=f"{small} : format(datum.value, '{sign}~s')", tickCount=6)


def time_axis(field: str, instants: Sequence[datetime]) -> alt.X:
    """A UTC axis whose labels are as fine as its ticks: no two of them read the same."""
    low, high = (edge(instants).timestamp() for edge in (min, max))
    high = max(high, low + 1)  # a single instant has room, too
    step = next((one for one in _STEPS_S if high - low <= MOST_TICKS * one), None)
    step = step or _STEPS_S[-1] * math.ceil((high - low) / (MOST_TICKS * _STEPS_S[-1]))
    form = "%d %b" if step >= 86_400 else "%H:%M" if step >= 60 else "%H:%M:%S"
    if step < 86_400 and high - low > 86_400:
        form = f"%d %b {form}"
    ticks = range(math.ceil(low / step) * step, math.floor(high) + 1, step)
    values = [_moment(tick) for tick in ticks]
    axis = alt.Axis(grid=False, labelOverlap=True, values=values, format=form)
    scale = alt.Scale(type="utc", domain=[_moment(low), _moment(high)], nice=False)
    return alt.X(f"{field}:T", title=None, axis=axis, scale=scale)


def _moment(at_s: float) -> alt.DateTime:
    """An instant of an axis; a bare number would be read as a year."""
    at = datetime.fromtimestamp(at_s, UTC)
    return alt.DateTime(
        year=at.year, month=at.month, date=at.day, hours=at.hour, minutes=at.minute,
        seconds=at.second, milliseconds=at.microsecond // 1000, utc=True,
    )  # fmt: skip


def clean(chart: Any) -> Any:
    """Without frames, in the theme's inks."""
    now = inks()
    return (
        chart.configure_view(strokeWidth=0)
        .configure_axis(
            labelColor=now.muted, titleColor=now.muted, gridColor=now.grid, domainColor=now.line,
            labelFontSize=12, titleFontSize=12, titleFontWeight="normal",
        )
        .configure_legend(labelFontSize=12.5, labelColor=now.ink)
    )  # fmt: skip
