"""Streams of the engines: token times, and each stream with its request."""

from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import streamlit as st

from dashboard import formatting, theme
from dashboard.charts import plots
from dashboard.data.reads import DashboardView
from dashboard.figures import time_column
from dashboard.sections.enginelines import typical_series
from ledger.queries.reads import StreamedAnswer

EACH = 600  # of each engine
SHOWN = 200
ID = r"[?&]request=([^&]+)"  # the part of a request link that is shown
NUMBER, LINK = st.column_config.NumberColumn, st.column_config.LinkColumn


def lines(found: Sequence[StreamedAnswer]) -> None:
    """Draw two charts side by side."""
    for column, title, name in zip(
        st.columns(2),
        ("Time to first token", "Time per further token"),
        ("ttft_us", "tpot_us"),
        strict=True,
    ):
        with column:
            st.subheader(title, anchor=False)
            records = typical_series(found, attrgetter(name))
            if not records:
                st.caption("No stream finished in this period.")
                continue
            chart = plots.lines(records, value="value", title="seconds", form=".2~r")
            theme.chart(chart, about="stream")
    st.caption(
        f"The latest {EACH} finished streams of each engine in the period, the middle and the "
        "slowest 5 of 100."
    )


def rows(view: DashboardView, found: Sequence[StreamedAnswer]) -> None:
    """Draw the streams, newest first, each with a link to its request of any team."""
    if not found:
        return
    st.subheader("Streams", anchor="streams")
    latest = found[: -SHOWN - 1 : -1]
    theme.table(
        table(view, latest),
        about="stream",
        height=240,
        column_config={
            formatting.zoned("at"): time_column("D MMM HH:mm:ss"),
            "output tokens": NUMBER(format="localized"),
            "request": LINK(display_text=ID),
        },
    )
    st.caption(
        f"The latest {len(latest)} of the charts' streams, newest first. A request leads to what "
        "it cost, why it went there and where its time went."
    )


def table(view: DashboardView, found: Sequence[StreamedAnswer]) -> list[dict[str, Any]]:
    chosen = {"period": view.period, "team": None}  # a stream is of one team, engines of all
    return [
        {
            formatting.zoned("at"): formatting.instant(answer.opened_us),
            "request": theme.to_page("spend", request=answer.request_id, **chosen),
            "engine": answer.engine,
            "first token, s": answer.ttft_us / 1e6,
            "each further, ms": None if answer.tpot_us is None else answer.tpot_us / 1e3,
            "output tokens": answer.output_tokens,
        }
        for answer in found
    ]
