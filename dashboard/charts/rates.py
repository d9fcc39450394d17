"""Hourly cost of own hardware, as steps over time."""

from collections.abc import Mapping

import altair as alt

from dashboard import formatting
from dashboard.charts.axes import (
    Chart,
    Records,
    axis_of,
    clean,
    colour_encoding,
    inline_data,
    markers,
    money_unit,
    priced,
    time_axis,
)


def steps(records: Records, *, colours: Mapping[str, str], now: object) -> Chart:
    """Return steps of `at`, `kind` (pool) and `usd` per GPU-hour, and a line at `now`.

    There must be at least one record.
    """
    records = priced(records)
    instants = [record["at"] for record in records]
    base = alt.Chart(inline_data(records), height=240).encode(
        x=time_axis("at", instants),
        y=alt.Y(
            "usd:Q",
            title=money_unit("dollars an hour of one GPU"),
            axis=axis_of(money=True),
            scale=alt.Scale(domain=[0, 1.2 * max(record["usd"] for record in records)]),
        ),
        color=colour_encoding(colours),
        tooltip=[
            alt.Tooltip("kind:N", title="pool"),
            alt.Tooltip("shown:N", title=money_unit("dollars an hour of one GPU")),
            alt.Tooltip("utcyearmonthdatehoursminutes(at):T", title=formatting.zoned("from")),
            alt.Tooltip("by:N", title="entered by"),
        ],
    )
    line = base.mark_line(interpolate="step-after", strokeWidth=2.5)
    points = base.transform_filter("datum.said").mark_point(filled=True, size=60)
    mark = {"at": now, "label": "now", "told": "right of it: entered for a day to come"}
    return clean(alt.layer(line, points, *markers([mark], time_axis("at", instants))))
