"""Bills and booked costs: two bars a day."""

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

INVOICED, BOOKED = "invoiced", "booked"
DAY = "utcFormat(utcParse(datum.value, '%Y-%m-%d'), '%d %b')"
COLOURS = {INVOICED: API, BOOKED: OWN}


def compare_chart(records: Records) -> Chart:
    """Return a bar chart of `day` (ISO), `kind` (invoiced or booked) and `usd`."""
    data = inline_data(priced(records))
    chart = (
        alt.Chart(data, height=260)
        .mark_bar(cornerRadius=1)
        .encode(
            x=alt.X(
                "day:O", title=None, axis=alt.Axis(labelAngle=0, labelOverlap=True, labelExpr=DAY)
            ),
            xOffset=alt.XOffset("kind:N", sort=[INVOICED, BOOKED]),
            y=alt.Y("usd:Q", title=money_unit("dollars a day"), axis=axis_of(money=True)),
            color=colour_encoding(COLOURS),
            tooltip=[
                alt.Tooltip("day:O", title="day (UTC)"),
                alt.Tooltip("kind:N", title="what"),
                alt.Tooltip("shown:N", title=money_unit("dollars")),
            ],
        )
    )
    return clean(chart)
