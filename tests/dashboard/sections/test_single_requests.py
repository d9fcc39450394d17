"""The table of single requests: what decides stands where a phone shows it."""

import re

import streamlit as st
from sqlalchemy import create_engine, text

from dashboard import formatting


def test_what_a_request_cost_stands_before_what_explains_it(page, month) -> None:
    columns = list(page("spend", month.url).dataframe[4].value.columns)
    assert columns[1:5] == ["team", "cost", "model", "went to"], "a phone shows the first ones"
    assert columns[-1] == "request", "the widest, and the least read"
    assert "claimed" not in columns, "nobody claims anything: the others have its room"


def test_each_flag_of_the_period_is_summed_and_explained(page, books, text_of) -> None:
    filled = books(peak=2.0, days=1)
    engine = create_engine(filled.url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE attempts SET flag = NULL"))
        api = connection.execute(
            text("SELECT count(*), sum(cost_pusd) FROM attempts WHERE backend = 'api'")
        ).one()
        connection.execute(text("UPDATE attempts SET flag = 'lost' WHERE backend = 'api'"))
    engine.dispose()
    st.cache_resource.clear()
    told = text_of(page("spend", filled.url))
    lost = formatting.plural(api[0], "attempt")
    assert f"lost: {lost}, its worker died" in told
    assert re.search(rf"is known\s+{re.escape(formatting.money(api[1]))}\s", told)
