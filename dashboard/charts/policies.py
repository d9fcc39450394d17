"""Charts that compare two policy sets, and show when sets became active.

The new set is magenta, the other one grey and dashed: a policy set is neither own nor API.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from dashboard import formatting
from dashboard.charts.axes import (
    Chart,
    Records,
    amount,
    axis_of,
    clean,
    colour_encoding,
    inline_data,
    markers,
    money_unit,
    priced,
    time_axis,
)
from dashboard.charts.plots import PALETTE
from dashboard.theme import API, OWN, inks
from ledger.money import PUSD_PER_USD

NEW = "#B14FC5"
FIXED, CHARGED = "fixed: own hardware", "APIs"
BAR = 22


def of_sets(names: Sequence[str]) -> dict[str, str]:
    """Return the color of each set; the first one is the new one."""
    return dict(zip(names, (NEW, inks().muted), strict=False))


def dollars(records: Records, names: Sequence[str]) -> Chart:
    """Return one bar per set in two parts, from `set`, `kind` (fixed or APIs) and `usd`."""
    data = inline_data(
        {**price, "order": int(price["kind"] == CHARGED)} for price in priced(records)
    )
    totals = {
        name: sum(record["usd"] for record in records if record["set"] == name) for name in names
    }
    y = alt.Y("set:N", sort=list(names), title=None, axis=_names())
    top = alt.Scale(
        domain=[0, 1.18 * amount(max(*totals.values(), 1e-9))]
    )  # with space for the figure
    bars = (
        alt.Chart(data, height=alt.Step(BAR + 14))
        .mark_bar(height=BAR, cornerRadius=2)
        .encode(
            x=alt.X(
                "usd:Q",
                title=money_unit("dollars in that time"),
                axis=axis_of(money=True),
                scale=top,
            ),
            y=y,
            color=colour_encoding({FIXED: OWN, CHARGED: API}),
            order=alt.Order("order:O"),
            tooltip=[
                alt.Tooltip("set:N", title="policies"),
                alt.Tooltip("kind:N", title="what"),
                alt.Tooltip("shown:N", title=money_unit("dollars")),
            ],
        )
    )
    ends = inline_data(
        {"set": name, "end": amount(usd), "shown": formatting.money(round(usd * PUSD_PER_USD))}
        for name, usd in totals.items()
    )
    texts = (
        alt.Chart(ends)
        .mark_text(align="left", dx=6, fontSize=12.5, fontWeight=600, color=inks().ink)
        .encode(x=alt.X("end:Q", scale=top), y=y, text=alt.Text("shown:N"))
    )
    return clean(bars + texts)


def shares(records: Records, names: Sequence[str], title: str, *, whole: bool) -> Chart:
    """Return bars by row and set, from `row`, `kind` (set), `share` and optional `promise`.

    With `whole`, the axis ends at 100 %, whatever the shares are.
    """
    records = [
        {**record, "end": max(record["share"], record.get("promise") or 0.0)} for record in records
    ]
    rows = list(dict.fromkeys(record["row"] for record in records))
    highest = 1.0 if whole else max([record["share"] for record in records], default=0.0)
    scale = alt.Scale(domain=[0, 1.15 * max(highest, 0.05)])
    ticks = [0, 0.25, 0.5, 0.75, 1.0] if whole else alt.Undefined
    x = alt.X(
        "share:Q", title=title, scale=scale,
        axis=alt.Axis(format=".0%" if highest > 0.1 else ".1%", tickCount=5, values=ticks),
    )  # fmt: skip
    y = alt.Y("row:N", sort=rows, title=None, axis=_names())
    offset = alt.YOffset("kind:N", sort=list(names))
    step = alt.Step((BAR - 4) * len(names) + 18, **{"for": "position"})
    base = alt.Chart(inline_data(records), height=step).encode(
        x=x, y=y, yOffset=offset,
        tooltip=[
            alt.Tooltip("row:N", title="what"),
            alt.Tooltip("kind:N", title="policies"),
            alt.Tooltip("share:Q", title="share", format=".1%"),
            alt.Tooltip("more:N", title="of"),
        ],
    )  # fmt: skip
    bars = base.mark_bar(cornerRadiusEnd=2).encode(color=colour_encoding(of_sets(names)))
    texts = base.mark_text(align="left", dx=6, fontSize=12, color=inks().ink).encode(
        x=alt.X("end:Q", scale=scale), text=alt.Text("share:Q", format=".1%")
    )
    promised = [record for record in records if record.get("promise") is not None]
    marks = (
        alt.Chart(inline_data(promised))
        .mark_tick(thickness=3, size=BAR, color=inks().ink)
        .encode(
            x=alt.X("promise:Q", scale=scale), y=y, yOffset=offset,
            tooltip=[alt.Tooltip("promise:Q", title="promised", format=".1%")],
        )
    )  # fmt: skip
    return clean(alt.layer(bars, texts, *([marks] if promised else [])))


def over_time_chart(
    records: Records, names: Sequence[str], field: str, titles: tuple[str, str], form: str
) -> Chart:
    """Return lines of `kind` (set), `at` and `field`; `titles` are of time and value."""
    dashes = alt.Scale(domain=list(names), range=[[1, 0], [5, 3]][: len(names)])
    step = 0.01 if form.endswith("%") else 1
    top = max(
        [record[field] for record in records], default=0.0
    )  # without records there is still an axis
    tops = alt.Scale(domain=[0, 1.05 * max(top, 4 * step)], nice=False)
    chart = (
        alt.Chart(inline_data(records), height=230)
        .mark_line(strokeWidth=1.8, clip=True)
        .encode(
            x=alt.X("at:Q", title=titles[0], axis=alt.Axis(grid=False, tickCount=8),
                    scale=alt.Scale(nice=False)),
            y=alt.Y(f"{field}:Q", title=titles[1], scale=tops,
                    axis=alt.Axis(format=form, tickCount=4, tickMinStep=step)),
            color=colour_encoding(of_sets(names), columns=2),
            strokeDash=alt.StrokeDash("kind:N", legend=None, scale=dashes),
            tooltip=[
                alt.Tooltip("kind:N", title="policies"),
                alt.Tooltip("at:Q", title=titles[0], format=".2f"),
                alt.Tooltip(f"{field}:Q", title=titles[1], format=form),
            ],
        )
    )  # fmt: skip
    return clean(chart)


def marked_chart(records: Records, marks: Sequence[Mapping[str, Any]], title: str) -> Chart:
    """Return lines of `at`, `until`, `kind` and `value` (a share), with `marks`."""
    ends = [record["at"] for record in records] + [record["until"] for record in records]
    names = sorted({record["kind"] for record in records})
    top = max([record["value"] for record in records], default=0.0)
    scale = alt.Scale(domain=[0, max(1.15 * top, 0.04)])
    x = time_axis("at", ends)
    last = max(record["at"] for record in records)
    closed = [{**record, "at": record["until"]} for record in records if record["at"] == last]
    lines = (
        alt.Chart(inline_data([*records, *closed]), height=230)
        .mark_line(strokeWidth=2, interpolate="step-after", clip=True)
        .encode(
            x=x,
            y=alt.Y("value:Q", title=title, scale=scale,
                    axis=alt.Axis(format=".1%" if top < 0.04 else ".0%", tickCount=4)),
            color=colour_encoding(dict(zip(names, (API, *PALETTE[2:]), strict=False))),
            tooltip=[
                alt.Tooltip("utcyearmonthdatehoursminutes(at):T", title=formatting.zoned("from")),
                alt.Tooltip("kind:N", title="what"),
                alt.Tooltip("value:Q", title=title, format=".1%"),
            ],
        )
    )  # fmt: skip
    within = [{**mark, "at": min(mark["at"], max(ends))} for mark in marks]
    return clean(alt.layer(lines, *markers(within, x)) if marks else lines)


def flows_chart(records: Records) -> Chart:
    """Return bars of requests that moved: `name` (from, to), `requests`, `shown` (dollars)."""
    names = [record["name"] for record in records]
    room = alt.Scale(domain=[0, 1.5 * max([record["requests"] for record in records], default=1)])
    base = alt.Chart(inline_data(records), height=alt.Step(44)).encode(
        y=alt.Y("name:N", sort=names, title=None,
                axis=alt.Axis(labelLimit=190, ticks=False, labelExpr="split(datum.label, '|')")),
        x=alt.X("requests:Q", title="requests", scale=room,
                axis=alt.Axis(format="~s", tickCount=4)),
        tooltip=[
            alt.Tooltip("from:N", title="went to"),
            alt.Tooltip("to:N", title="would go to"),
            alt.Tooltip("requests:Q", format=",.0f"),
            alt.Tooltip("shown:N", title=money_unit("API dollars")),
        ],
    )  # fmt: skip
    bars = base.mark_bar(color=NEW, cornerRadiusEnd=3, height=BAR)
    texts = base.mark_text(align="left", dx=5, fontSize=12, color=inks().muted).encode(
        text=alt.Text("beside:N")
    )
    return clean(bars + texts)


def _names() -> alt.Axis:
    return alt.Axis(labelLimit=170, ticks=False, labelPadding=6)
