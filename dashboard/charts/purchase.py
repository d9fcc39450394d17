"""Charts of purchase plans: cumulative cost of each option, and cost by number of GPUs."""

from collections.abc import Mapping

import altair as alt

from dashboard.charts.axes import (
    Chart,
    Records,
    axis_of,
    clean,
    colour_encoding,
    inline_data,
    money_unit,
    priced,
)


def cumulative(records: Records, *, colours: Mapping[str, str]) -> Chart:
    """Return lines of `month`, `usd`, `kind`: the amount paid by the end of each month."""
    kinds = list(colours)
    data = inline_data(
        {**record, "dash": str(kinds.index(record["kind"]))} for record in priced(records)
    )
    dashes = [[1, 0], [6, 3], [2, 3], [8, 3, 2, 3], [10, 4], [4, 4]]
    chart = (
        alt.Chart(data, height=340)
        .mark_line(strokeWidth=2.5, interpolate="linear")
        .encode(
            x=alt.X(
                "month:Q",
                title="months from the start",
                axis=alt.Axis(tickMinStep=1),
                scale=alt.Scale(nice=False),
            ),
            y=alt.Y("usd:Q", title=money_unit("dollars paid until then"), axis=axis_of(money=True)),
            color=colour_encoding(colours, columns=2),
            strokeDash=alt.StrokeDash(
                "dash:N",
                legend=None,
                scale=alt.Scale(
                    domain=[str(n) for n in range(len(kinds))], range=dashes[: len(kinds)]
                ),
            ),
            tooltip=[
                alt.Tooltip("kind:N", title="way"),
                alt.Tooltip("month:Q", title="month"),
                alt.Tooltip("shown:N", title="paid until then"),
            ],
        )
    )
    return clean(chart)


def options(records: Records, *, colours: Mapping[str, str]) -> Chart:
    """Return bars of `name` (GPU count), `kind` (GPUs, ops, APIs), `usd` a month."""
    order = list(colours)
    data = inline_data(
        {**record, "place": order.index(record["kind"])} for record in priced(records)
    )
    names = list(dict.fromkeys(record["name"] for record in records))
    chart = (
        alt.Chart(data, height=alt.Step(26))
        .mark_bar(height=16)
        .encode(
            y=alt.Y("name:N", sort=names, title=None, axis=alt.Axis(labelLimit=220, ticks=False)),
            x=alt.X("usd:Q", title=money_unit("dollars a month"), axis=axis_of(money=True)),
            color=colour_encoding(colours),
            order=alt.Order("place:Q"),
            tooltip=[
                alt.Tooltip("name:N", title="number"),
                alt.Tooltip("kind:N", title="part"),
                alt.Tooltip("shown:N", title="a month"),
            ],
        )
    )
    return clean(chart)
