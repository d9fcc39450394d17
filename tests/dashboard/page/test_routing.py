"""Shares and reasons equal the journal; predictions, refusals and absence have their words."""

from collections import Counter

import streamlit as st
from sqlalchemy import text
from streamlit.dataframe_util import convert_arrow_bytes_to_pandas_df

from dashboard import formatting
from ledger.database import make_engine, migrate
from ledger.policies import PolicySet, store_policies
from ledger.queries.reads import HOUR_US


def test_shares_equal_the_journal(page, month, text_of) -> None:
    shown = text_of(page("routing", month.url))
    own = sum(first.backend == "own" for first in month.opened)
    spilled = sum(first.spill_reason is not None for first in month.opened)
    assert f"{len(month.opened):,}" in shown
    assert f"{100 * own / len(month.opened):.0f} %" in shown
    assert f"{own:,} requests" in shown
    assert f"{100 * spilled / (own + spilled):.1f} %" in shown


def test_spill_reasons_equal_the_journal(page, books) -> None:
    filled = books(peak=40.0, days=4)
    test = page("routing", filled.url)
    (data,) = test.get("vega_lite_chart")[1].proto.datasets
    shown = convert_arrow_bytes_to_pandas_df(data.data.data).to_dict("records")
    counts = Counter(
        first.spill_reason for first in filled.opened if first.spill_reason is not None
    )
    assert {row["name"]: row["value"] for row in shown} == {
        formatting.reason(code): number for code, number in counts.items()
    }
    assert len(shown) >= 3


def drawn(test, place: int) -> bytes:
    """All that a chart is drawn from, with its data."""
    return test.get("vega_lite_chart")[place].proto.SerializeToString()


def test_policies_put_in_force_are_marked_where_they_were(page, books, text_of) -> None:
    filled = books(peak=2.0, days=2)
    engine = make_engine(filled.url)
    for number, hours in ((1, 30), (2, 12), (3, 1)):
        at_us = filled.now_us - hours * HOUR_US
        store_policies(engine, PolicySet(number, "policies: []", at_us, "ann", "less spill"))
    engine.dispose()
    test = page("routing", filled.url, period="24 h")
    assert "Dashed: policies put in force" in text_of(test)
    for place in (0, 3, 4):  # who answered, the bid price, the headroom
        told = drawn(test, place)
        marks = [n for n in (1, 2, 3) if f"policies {n} by ann: less spill".encode() in told]
        samples = place > 0  # of the last two hours alone
        assert marks == ([3] if samples else [2, 3])


def test_the_price_of_room_and_how_much_was_free_are_drawn(page, books) -> None:
    filled = books(peak=2.0, days=1)
    test = page("routing", filled.url, period="24 h")
    titles = [subheader.value for subheader in test.subheader]
    assert titles[3:5] == ["Bid price of an engine's time", "KV cache headroom, at its lowest"]
    assert b"policies" not in drawn(test, 0), "none was put in force"


def test_answers_in_one_piece_have_no_first_token_to_compare(page, books, text_of) -> None:
    filled = books(peak=2.0, days=1)
    assert "streamed answers;" in text_of(page("routing", filled.url))
    engine = make_engine(filled.url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE attempts SET ttft_us = NULL"))
    engine.dispose()
    st.cache_resource.clear()
    shown = text_of(page("routing", filled.url))
    assert "No streamed answer in this period" in shown
    assert "answers in one piece are not compared" in shown


def test_refusals_are_listed(page, books) -> None:
    filled = books(peak=2.0, days=1)
    table = page("routing", filled.url).dataframe[0].value.to_dict("records")
    assert sum(row["requests"] for row in table) == 7
    assert {row["why"] for row in table} == {"budget spent", "too many requests at once"}


def test_no_traffic(page, tmp_path, text_of) -> None:
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    migrate(url)
    assert "nothing was routed. Choose a longer one, or send a request" in text_of(
        page("routing", url)
    )
