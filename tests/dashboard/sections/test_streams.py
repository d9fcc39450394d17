"""The streams behind the charts of tokens' times: each leads to its request."""

import streamlit as st

from dashboard.data import reads
from dashboard.sections import streams
from dashboard.viewer_identity import AT_THIS_MACHINE
from ledger.queries.reads import StreamedAnswer

S = 10**6


def view(team: str | None = None) -> reads.DashboardView:
    return reads.DashboardView("", "7 d", team, 9 * S, who=lambda: AT_THIS_MACHINE)


def test_a_row_leads_to_its_request_whichever_team_is_chosen() -> None:
    st.query_params.from_dict({"team": "search", "zone": "Europe/Berlin", "x": "1"})
    answer = StreamedAnswer(5 * S, "pool:a/0", 250_000, 12_500, "req_1&2", 40)
    (row,) = streams.table(view(), [answer])
    assert row["request"] == "spend?zone=Europe%2FBerlin&request=req_1%262&period=7+d"
    assert (row["first token, s"], row["each further, ms"], row["output tokens"]) == (
        0.25,
        12.5,
        40,
    )


def test_of_one_token_there_is_no_time_of_a_further_one() -> None:
    (row,) = streams.table(view(), [StreamedAnswer(5 * S, "pool:a/0", 250_000, None, "r", 1)])
    assert row["each further, ms"] is None
