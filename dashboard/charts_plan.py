"""Charts of plans: what each way has cost until when, and which input moves a result most."""

from collections.abc import Mapping

import altair as alt

from dashboard.charts import Chart, Records, axis_of, clean, coloured, dollar_text, inline


def cumulative(records: Records, *, colours: Mapping[str, str]) -> Chart:
    """`month`, `usd`, `kind`: what was paid until the end of each month."""
    kinds = list(colours)
    data = inline(
        {**record, "shown": dollar_text(record["usd"]), "dash": str(kinds.index(record["kind"]))}
        for record in records
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
            y=alt.Y("usd:Q", title="dollars paid until then", axis=axis_of(money=True)),
            color=coloured(colours, columns=2),
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
