"""Bills beside the books: two bars a day."""

import altair as alt

from dashboard.charts import Chart, Records, axis_of, clean, coloured, dollar_text, inline
from dashboard.look import API, OWN

INVOICED, BOOKED = "invoiced", "booked"
COLOURS = {INVOICED: API, BOOKED: OWN}


def beside(records: Records) -> Chart:
    """`day` (ISO), `kind` (invoiced or booked), `usd`."""
    data = inline({**record, "shown": dollar_text(record["usd"])} for record in records)
    chart = (
        alt.Chart(data, height=260)
        .mark_bar(cornerRadius=1)
        .encode(
            x=alt.X("day:O", title=None, axis=alt.Axis(labelAngle=-40, labelOverlap=True)),
            xOffset=alt.XOffset("kind:N", sort=[INVOICED, BOOKED]),
            y=alt.Y("usd:Q", title="dollars a day", axis=axis_of(money=True)),
            color=coloured(COLOURS),
            tooltip=[
                alt.Tooltip("day:O", title="day (UTC)"),
                alt.Tooltip("kind:N", title="what"),
                alt.Tooltip("shown:N", title="dollars"),
            ],
        )
    )
    return clean(chart)
