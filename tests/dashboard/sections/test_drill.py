"""A day leads to its hours and a row to its requests; a chip says so and takes it back."""

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from dashboard import formatting, navigation
from dashboard.sections import drill
from ledger.reporting_zone import ReportingZone


@pytest.fixture
def spend(month, monkeypatch):
    monkeypatch.setenv("BREAKEVEN_LEDGER_URL", month.url)
    test = AppTest.from_file(navigation.__file__.replace("navigation.py", "app.py"))
    test.default_timeout = 120
    test.query_params["live"] = "false"
    test._page_hash = calc_hash("spend")
    yield test.run()
    st.cache_resource.clear()


def labels(test: AppTest) -> list[str]:
    return [button.label for button in test.button if str(button.key).startswith("chip-")]


def test_a_day_is_opened_by_the_hour_and_taken_back(spend, text_of) -> None:
    offered = spend.selectbox(key="drill-day").options
    assert offered[0] == drill.NO_DAY
    costs = [float(name.partition("$")[2].rstrip(")")) for name in offered[1:]]
    assert costs == sorted(costs, reverse=True), "the dearest first"
    spend.selectbox(key="drill-day").set_value(offered[1]).run()
    assert not spend.exception
    day = offered[1].partition(" (")[0]
    assert labels(spend) == [f"period: {day}"]
    assert spend.segmented_control(key="period").value == "days"
    total = next(block for block in spend.get("html") if ">Total" in block.proto.body)
    assert f"${costs[0]:.2f}" in total.proto.body, "the day's sum is the bar's"
    spend.button(key="chip-period").click().run()
    assert labels(spend) == []
    assert spend.segmented_control(key="period").value == "30 d"


def test_a_filter_of_requests_is_a_chip(spend, month) -> None:
    spend.selectbox(key="only-model").set_value("gpt-4o-mini").run()
    assert labels(spend) == [f"model: {formatting.quote('gpt-4o-mini')}"]
    spend.button(key="chip-model").click().run()
    assert not spend.exception
    assert labels(spend) == []
    assert spend.selectbox(key="only-model").value == "any"


def test_a_row_narrows_the_page_or_its_requests(monkeypatch) -> None:
    state: dict = {}
    monkeypatch.setattr(drill.st, "session_state", state)
    drill.choose("team", "Idle (unallocated)")
    assert state == {}, "nobody's time is nobody's page"
    drill.choose("team", "search")
    drill.choose("backend", "openai/gpt-4o-mini")
    drill.choose("key", "app one (k1)")
    assert (state["team"], state["only-target"], state["only-key"]) == (
        "search", "openai/gpt-4o-mini", "k1",
    )  # fmt: skip
    drill.choose("key", "k2")
    assert state["only-key"] == "k2"
    state["drill-model"] = {"selection": {"rows": [1]}}
    drill._open_row("model", ["chat", "code"])
    assert state["only-model"] == "code"
    state["drill-model"] = {"selection": {"rows": []}}
    drill._open_row("model", ["chat", "code"])
    assert state["only-model"] == "code", "what is selected no more changes nothing"


def test_a_clicked_bar_opens_its_day_or_narrows_to_its_name(monkeypatch) -> None:
    state: dict = {}
    monkeypatch.setattr(drill.st, "session_state", state)
    noon_us = 1_795_435_200_000_000 + 12 * 3_600 * 10**6
    state[drill.DAY_BARS] = {"selection": {drill.CLICKED: [{"bucket": noon_us}]}}
    drill._open_bar(ReportingZone("Asia/Kolkata"))
    day = ReportingZone("Asia/Kolkata").date_of(noon_us)
    assert (state["period"], state["days"]) == ("days", (day, day))
    state["bars-model"] = {"selection": {drill.CLICKED: [{"name": "chat"}]}}
    drill._choose_bar("model", "bars-model")
    assert state["only-model"] == "chat"
    state["bars-model"] = {"selection": {drill.CLICKED: []}}
    drill._choose_bar("model", "bars-model")
    assert state["only-model"] == "chat", "what is clicked no more changes nothing"
