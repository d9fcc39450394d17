"""Charts of plans: what each way has cost until when, and which input moves a result most."""

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
from dashboard.theme import API, OWN


def cumulative(records: Records, *, colours: Mapping[str, str]) -> Chart:
    """`month`, `usd`, `kind`: what was paid until the end of each month."""
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


def tornado(records: Records, *, share: int) -> Chart:
    """`name`, `end` (`-20 %` or `+20 %`), `usd` (change of the result), `order`: widest first."""
    names = [record["name"] for record in sorted(records, key=lambda entry: entry["order"])]
    data = inline_data(
        {**record, "kind": f"{record['end']} of the input"} for record in priced(records)
    )
    colours = {f"-{share} % of the input": API, f"+{share} % of the input": OWN}
    chart = (
        alt.Chart(data, height=alt.Step(17))
        .mark_bar(cornerRadius=2)
        .encode(
            y=alt.Y(
                "name:N",
                sort=list(dict.fromkeys(names)),
                title=None,
                axis=alt.Axis(labelLimit=160, ticks=False),
            ),
            yOffset=alt.YOffset("kind:N", sort=list(colours)),
            x=alt.X(
                "usd:Q",
                title=money_unit("change of the result, dollars a month"),
                axis=axis_of(money=True),
            ),
            color=colour_encoding(colours, columns=2),
            tooltip=[
                alt.Tooltip("name:N", title="input"),
                alt.Tooltip("end:N", title="moved by"),
                alt.Tooltip("shown:N", title="result moves by"),
            ],
        )
    )
    return clean(chart)
