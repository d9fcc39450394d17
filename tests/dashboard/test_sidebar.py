"""Zone and money are chosen in the sidebar, stand in the address, and are said under each page."""

import time
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard import viewer_identity
from dashboard.sidebar import of_rate
from dashboard.viewer import Viewer
from ledger.currencies import Currency
from ledger.database import make_engine
from ledger.identity.people import DashboardRole
from ledger.manual_entries import CURRENCY, ManualEntry, enter
from ledger.reporting_zone import declare_zone

APP = str(Path(__file__).resolve().parents[2] / "dashboard" / "app.py")
TODAY = datetime.now(UTC).date()


@pytest.fixture
def app(monkeypatch, books):
    def run(organisation: str = "UTC", **query: str) -> AppTest:
        filled = books(days=1, peak=1.0)
        now_us = time.time_ns() // 1000
        says = {"per_usd": "0.5", "day": str(TODAY - timedelta(days=1)), "source": "ECB"}
        engine = make_engine(filled.url)
        with engine.begin() as connection:
            enter(connection, ManualEntry(0, CURRENCY + "EUR", says, now_us, now_us, "fay"))
            declare_zone(connection, organisation, now_us)
        engine.dispose()
        monkeypatch.setenv("BREAKEVEN_LEDGER_URL", filled.url)
        test = AppTest.from_file(APP, default_timeout=120)
        for name, value in query.items():
            test.query_params[name] = value
        test.run()
        assert not test.exception, test.exception
        return test

    return run


def test_a_shared_address_is_read_as_it_was_sent(app, text_of) -> None:
    test = app(zone="Asia/Tokyo", money="EUR", live="false")
    assert test.selectbox(key="zone").value == "Asia/Tokyo"
    assert test.selectbox(key="money").value == "EUR"
    said = text_of(test)
    assert "Times are those of Asia/Tokyo; days and months are those of UTC." in said
    assert "Amounts are in EUR: 0.5 a dollar on" in said
    assert " JST; " in said
    assert "EUR\u00a0" in said
    test.selectbox(key="money").set_value("USD").run()
    test.selectbox(key="zone").set_value("UTC").run()
    said = text_of(test)
    assert "Amounts are in" not in said
    assert "Times are those of" not in said


def test_who_sees_one_team_has_the_sidebar_and_the_page(app, monkeypatch, text_of) -> None:
    """The organisation's zone is of no team: while it was refused, so was each page of theirs."""
    eve = Viewer("eve@example.com", DashboardRole.VIEWER, ("search",))
    monkeypatch.setattr(viewer_identity, "AT_THIS_MACHINE", eve)
    test = app("Asia/Tokyo", live="false")
    assert "Asia/Tokyo" in test.selectbox(key="zone").help
    said = text_of(test)
    assert "As of " in said
    assert "days and months are those of Asia/Tokyo" in said
    assert "Not for you to see" not in said


def test_money_without_a_rate_and_a_place_that_is_none_stay_as_the_books(app, text_of) -> None:
    test = app(zone="Nowhere/Atlantis", money="ZZZ", live="false")
    assert test.selectbox(key="zone").value == "UTC"
    assert test.selectbox(key="money").value == "USD"
    assert test.selectbox(key="money").options == ["USD", "EUR"]
    assert "As of" in text_of(test)


def test_days_are_those_of_the_organisation(app, text_of) -> None:
    test = app(zone="UTC", live="false", organisation="Asia/Kolkata")
    assert "Times are those of UTC; days and months are those of Asia/Kolkata." in text_of(test)


def test_an_old_rate_says_so() -> None:
    currency = Currency("EUR", Fraction(9, 10), date(2026, 11, 2), "ECB", "fay")
    assert of_rate(currency, date(2026, 11, 9)) == "0.9 a dollar on 02 Nov 2026, says ECB"
    assert "**8 days old**: enter a newer rate" in of_rate(currency, date(2026, 11, 10))


@pytest.mark.parametrize(
    ("rate", "shown"),
    [("1070000", "1,070,000"), ("89500.25", "89,500.25"), ("0.306612", "0.306612"),
     ("156.1234", "156.1234")],
)  # fmt: skip
def test_a_rate_is_shown_in_all_its_digits(rate, shown) -> None:
    """Red before: 1,070,000 rials a dollar were `1.07e+06`, and 156.1234 lost its last digit."""
    currency = Currency("IRR", Fraction(rate), date(2026, 11, 2), "ECB", "ann")
    assert of_rate(currency, date(2026, 11, 3)).startswith(f"{shown} a dollar on")
