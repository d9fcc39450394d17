"""Waterfall of one request: how its time was spent, attempt by attempt."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import streamlit as st

from dashboard import theme
from dashboard.charts import axes
from ledger.reports.waterfall import AttemptWaterfall

COLOURS = {
    "gateway": "#98A2B3", "network": theme.LOSS, "queue": "#B54708", "prefill": "#7A5AF8",
    "first token": "#7A5AF8", "answer": theme.OWN, "decode": theme.OWN,
}  # fmt: skip


def show(tries: Sequence[AttemptWaterfall]) -> None:
    records = spans(tries)
    if not records:
        return
    st.caption("Where the time went, in milliseconds from the request's arrival:")
    kinds = {record["kind"] for record in records}
    used = {what: colour for what, colour in COLOURS.items() if what in kinds}
    chart = (
        alt.Chart(axes.inline_data(records), height=alt.Step(26))
        .mark_bar(cornerRadius=1, height=14)
        .encode(
            x=alt.X("from:Q", title="ms", axis=alt.Axis(format=",.0f", tickCount=6)),
            x2="to:Q",
            y=alt.Y("row:N", sort=None, title=None, axis=alt.Axis(labelLimit=320, ticks=False)),
            color=axes.colour_encoding(used),
            tooltip=[
                alt.Tooltip("kind:N", title="what"),
                alt.Tooltip("ms:Q", title="ms", format=",.1f"),
                alt.Tooltip("how:N", title="known"),
                alt.Tooltip("target:N", title="at"),
            ],
        )
    )
    theme.chart(axes.clean(chart), about="attempt")
    for try_ in tries:
        if try_.warning:
            st.warning(f"{try_.warning[0].upper()}{try_.warning[1:]}.", icon=":material/route:")


def spans(tries: Sequence[AttemptWaterfall]) -> list[dict[str, Any]]:
    """Return one row per span; with several attempts, rows are named by target."""
    several = len(tries) > 1
    return [
        {
            "row": f"{place}. {try_.target}: {span.what}" if several else span.what,
            "kind": span.what,
            "from": span.start_us / 1e3,
            "to": (span.start_us + span.length_us) / 1e3,
            "ms": span.length_us / 1e3,
            "how": span.how,
            "target": try_.target,
        }
        for place, try_ in enumerate(tries, start=1)
        for span in try_.spans
    ]
