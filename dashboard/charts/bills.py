"""Bills beside the books: two bars a day."""

import altair as alt

from dashboard.charts.axes import Chart, Records, axis_of, clean, coloured, in_money, inline, priced
from dashboard.theme import API, OWN

INVOICED, BOOKED = "invoiced", "booked"
DAY = "utcFormat(utcParse(datum.value, '%Y-%m-%d'), '%d %b')"
COLOURS = {INVOICED: API, BOOKED: OWN}


def beside(records: Records) -> Chart:
    """`day` (ISO), `kind` (invoiced or booked), `usd`."""
    data = inline(priced(records))
    chart = (
        alt.Chart(data, height=260)
        .mark_bar(cornerRadius=1)
        .encode(
            x=alt.X(
                "day:O", title=None, axis=alt.Axis(labelAngle=0, labelOverlap=True, labelExpr=DAY)
            ),
            xOffset=alt.XOffset("kind:N", sort=[INVOICED, BOOKED]),
            y=alt.Y("usd:Q", title=in_money("dollars a day"), axis=axis_of(money=True)),
            color=coloured(COLOURS),
            tooltip=[
                alt.Tooltip("day:O", title="day (UTC)"),
                alt.Tooltip("kind:N", title="what"),
                alt.Tooltip("shown:N", title=in_money("dollars")),
            ],
        )
    )
    return clean(chart)
