"""Prices over a gateway: looked at, asked, stored by name, and exactly as they were shown."""

import msgspec
import pytest
import streamlit as st
from sqlalchemy import create_engine, text

from dashboard.page import prices
from ledger.database import migrate
from ledger.identity.people import DashboardRole
from ledger.prices.drafts import PriceDraft
from ledger.prices.stored import import_drafts, load_price_book, records_of

FAY, JOE = "fay@example.com", "joe@example.com"
HEAD = "name,input_usd_per_million,output_usd_per_million,source,source_date\n"
NAME = "acme/tiny"
PRICES = {  # as the books' own, pico-USD a token
    "anthropic/claude-haiku-4-5": (1_000_000, 100_000, 5_000_000),
    "openai/gpt-4o-mini": (150_000, 75_000, 600_000),
}


@pytest.fixture
def looking(page_as):
    def look(usd: str, person: str | None = FAY, role: DashboardRole = DashboardRole.FINANCE):
        test = page_as("prices", person, role)
        if person is None:
            return test
        test.selectbox(key="prices-source").set_value(test.selectbox[0].options[-1]).run()
        file = f"{HEAD}{NAME},{usd},0.4,contract,2026-11-02\n".encode()
        test.file_uploader(key="prices-file").set_value(("acme.csv", file, "text/csv")).run()
        test.button(key="prices-look").click().run()
        assert not test.exception
        return test

    return look


def stored(gateway) -> list:
    return [] if load_price_book(gateway.engine).find(NAME, 2**62) is None else [
        record.actor for record in records_of(gateway.engine, NAME)
    ]  # fmt: skip


def test_what_is_shown_is_approved_by_name(gateway, looking, text_of) -> None:
    test = looking("0.1")
    assert test.dataframe[0].value["new"].tolist() == ["0.1", "0.4"]
    test.button(key="prices-approve").click().run()
    assert stored(gateway) == [], "the control: nobody has said yes"
    test.button(key="prices-yes").click().run()
    assert test.success[0].value == f"Stored: 1 version of acme.csv, approved by {FAY}."
    assert stored(gateway) == [FAY]
    again = looking("0.1")
    assert "nothing to approve" in again.success[0].value
    assert again.success[0].value.startswith("The book has 1 price of")
    dearer = looking("0.3")
    assert dearer.dataframe[0].value["change, %"].tolist() == [200.0]
    assert "+200 %" in str(dearer.get("vega_lite_chart")[0].proto)


def test_what_moved_since_it_was_shown_is_not_stored(gateway, looking) -> None:
    slow = looking("0.5")
    slow.button(key="prices-approve").click().run()
    quick = looking("0.5")
    quick.button(key="prices-approve").click().run()
    quick.button(key="prices-yes").click().run()
    before = stored(gateway)
    slow.button(key="prices-yes").click().run()
    assert "review the changes again" in slow.error[0].value
    assert stored(gateway) == before


def test_what_the_dashboard_believes_of_somebody_opens_nothing(gateway, looking) -> None:
    before = stored(gateway)
    test = looking("0.7", JOE)
    test.button(key="prices-approve").click().run()
    test.button(key="prices-yes").click().run()
    assert f"{JOE} does not have the scope `prices:apply`" in test.error[0].value
    assert stored(gateway) == before


def test_who_has_no_name_is_told_the_commands(looking, text_of) -> None:
    test = looking("", None, DashboardRole.ADMIN)
    said = text_of(test)
    assert "breakeven prices import" in said
    assert "`dashboard.access_file` names people" in said
    assert not test.button


def test_prices_in_force_stand_there_for_everybody(looking) -> None:
    """What was asked for or compared, at what the journal's prices are: dollars for 1M tokens."""
    for name in (None, FAY):
        table = looking("0.1", name).dataframe[-1].value.set_index("name")
        for target, each in PRICES.items():
            row = table.loc[target]
            assert [row[kind] for kind in ("input", "cached", "output")] == [
                pytest.approx(pusd / 10**6) for pusd in each
            ]  # fmt: skip
            assert row["source"] == "a list"


def test_a_target_with_another_ones_price_is_no_target_without_a_price(
    books, page, text_of
) -> None:
    """By `prices_as`: it was said to be flagged unpriced while every answer had its price."""
    url = books(days=1, peak=1.0).url
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE attempts SET target = 'acme/same' WHERE target = 'openai/gpt-4o-mini'")
        )
        connection.execute(
            text("UPDATE rollup_cells SET target = 'acme/same' WHERE target = 'openai/gpt-4o-mini'")
        )
    test = page("prices", url)
    assert "acme/same" in test.dataframe[0].value["name"].tolist(), text_of(test)
    assert not test.warning
    assert "`acme/same` as `openai/gpt-4o-mini`" in text_of(test)
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE attempts SET price_version = NULL WHERE target = 'acme/same'")
        )
    engine.dispose()
    st.cache_resource.clear()
    assert "No price in the book for acme/same" in page("prices", url).warning[0].value


def test_a_price_of_its_own_that_nobody_was_charged_by_is_not_shown(books, page, text_of) -> None:
    """`prices_as` goes before a name's own price: the page showed the one that nothing cost."""
    url = books(days=1, peak=1.0).url
    target, other = "openai/gpt-4o-mini", "anthropic/claude-haiku-4-5"
    own = page("prices", url)
    assert own.dataframe[0].value.set_index("name").loc[target]["output"] == 0.6, "the control"
    assert "Priced as others" not in text_of(own)
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE attempts SET price_version = 1 WHERE target = :target"), {"target": target}
        )
    engine.dispose()
    st.cache_resource.clear()
    test = page("prices", url)
    assert test.dataframe[0].value.set_index("name").loc[target]["output"] == 5.0
    assert f"`{target}` as `{other}`" in text_of(test)


def test_a_price_stands_there_to_its_last_place() -> None:
    """$0.075 for 1M tokens stood there as $0.08."""
    row = {"input": 1.0, "cached": 0.075, "output": None}
    assert prices.price_format([row]) == "$%.3f"
    assert prices.price_format([{**row, "cached": 0.5}]) == "$%.2f"
    assert prices.price_format([]) == "$%.2f"


def test_what_no_book_prices_is_no_zero() -> None:
    row = prices.price_row("acme/none", None)
    assert [row[kind] for kind in prices.KINDS] == [None] * 3


def test_books_without_an_api_say_what_to_do(page, text_of, tmp_path) -> None:
    url = f"sqlite:///{tmp_path / 'empty.db'}"
    migrate(url)
    said = text_of(page("prices", url))
    assert "No API was asked and nothing compared" in said


def test_charges_that_a_price_does_not_say_stand_beside_it(gateway, looking, text_of) -> None:
    name = "openai/gpt-4o-mini"
    price = load_price_book(gateway.engine).find(name, 2**62)
    assert "not in it" not in text_of(looking("", None, DashboardRole.ADMIN))
    unread = ("search_context_cost_per_query", "off_peak_pricing")
    terms = msgspec.structs.replace(price.terms, unread=unread)
    draft = PriceDraft(name, price.book, terms, price.rank, price.source, price.source_date)
    import_drafts(gateway.engine, [draft], at_us=price.effective_from_us + 1)
    test = looking("", None, DashboardRole.ADMIN)
    row = test.dataframe[-1].value.set_index("name").loc[name]
    assert row["not in it"] == unread[0]
    assert "until a price file states it" in text_of(test)
