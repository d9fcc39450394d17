"""Charts of spending: changes, groups, and the hours of a week."""

from collections.abc import Mapping, Sequence

import altair as alt

from dashboard import formatting
from dashboard.charts.axes import (
    Chart,
    Records,
    axis_of,
    clean,
    colour_encoding,
    inline_data,
    money_unit,
    priced,
    small_money,
)
from dashboard.theme import API, LIGHT, OWN, inks

DAYS: Sequence[str] = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MORE, LESS = "more than before", "less than before"


def changes_chart(records: Records) -> Chart:
    """Return bars of `name` and `usd` (change) on both sides of zero."""
    data = inline_data(
        {**record, "kind": MORE if record["usd"] > 0 else LESS} for record in priced(records)
    )
    names = [record["name"] for record in records]
    axis = alt.Axis(labelLimit=220, ticks=False)
    chart = (
        alt.Chart(data, height=alt.Step(30))
        .mark_bar(cornerRadius=2, height=17)
        .encode(
            y=alt.Y("name:N", sort=names, title=None, axis=axis),
            x=alt.X("usd:Q", title=money_unit("change, dollars"), axis=axis_of(money=True)),
            color=colour_encoding({MORE: API, LESS: OWN}),
            tooltip=[
                alt.Tooltip("name:N", title="what"),
                alt.Tooltip("shown:N", title="change"),
            ],
        )
    )
    return clean(chart)


def groups(records: Records, colours: Mapping[str, str]) -> Chart:
    """Return stacked bars of `name`, `kind` and `usd`, in the given order."""
    names = list(dict.fromkeys(record["name"] for record in records))
    order = {kind: place for place, kind in enumerate(colours)}
    data = inline_data({**record, "order": order[record["kind"]]} for record in priced(records))
    chart = (
        alt.Chart(data, height=alt.Step(28))
        .mark_bar(cornerRadius=1, height=17)
        .encode(
            y=alt.Y("name:N", sort=names, title=None, axis=alt.Axis(labelLimit=230, ticks=False)),
            x=alt.X("usd:Q", title=money_unit("dollars"), axis=axis_of(money=True)),
            color=colour_encoding(colours),
            order=alt.Order("order:Q"),
            tooltip=[
                alt.Tooltip("name:N", title="who"),
                alt.Tooltip("kind:N", title="what"),
                alt.Tooltip("shown:N", title="spent"),
            ],
        )
    )
    return clean(chart)


def week(records: Records) -> Chart:
    """Return one square per hour of a week, from `day` (0 is Monday), `hour` and `usd`."""
    data = inline_data({**record, "name": DAYS[record["day"]]} for record in priced(records))
    chart = (
        alt.Chart(data, height=alt.Step(24))
        .mark_rect(cornerRadius=2)
        .encode(
            x=alt.X("hour:O", title=formatting.zoned("hour of the day"), axis=alt.Axis(labelAngle=0,
                    labelOverlap=True)),
            y=alt.Y("name:O", sort=list(DAYS), title=None),
            color=alt.Color(
                "usd:Q",
                title=money_unit("dollars an hour"),
                scale=alt.Scale(scheme="viridis", reverse=inks() is LIGHT),  # much stands out
                legend=alt.Legend(orient="top", gradientLength=180, format=small_money()),
            ),
            tooltip=[
                alt.Tooltip("name:N", title="day"),
                alt.Tooltip("hour:O", title="hour"),
                alt.Tooltip("shown:N", title=money_unit("dollars an hour")),
            ],
        )
    )  # fmt: skip
    return clean(chart)
