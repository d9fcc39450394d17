"""Amounts and times are read in the chosen money and zone; the books stay as they are."""

from datetime import UTC, date, datetime
from fractions import Fraction

import pytest

from dashboard import figures, formatting, theme
from dashboard.charts import plots
from dashboard.display import BOOKS, DisplaySettings, known_zone, now, read_as
from ledger.currencies import Currency

EUR = Currency("EUR", Fraction(9, 10), date(2026, 11, 2), "ECB", "fay@example.com")
BERLIN = DisplaySettings("Europe/Berlin", EUR)
SUMMER_US, WINTER_US = (
    round(datetime(2026, month, 1, 12, tzinfo=UTC).timestamp()) * 10**6 for month in (7, 12)
)


def test_the_books_are_read_where_nothing_is_chosen() -> None:
    assert now() == BOOKS
    assert formatting.money(12_340_000_000_000) == "$12.34"
    assert formatting.moment(WINTER_US) == "01 Dec 12:00 UTC"
    assert formatting.zoned("from") == "from (UTC)"


@pytest.mark.parametrize(
    ("pusd", "shown"),
    [
        (12_340_000_000_000, "EUR\u00a011.11"),
        (-(10**16), "-EUR\u00a09,000"),
        (10**9, "EUR\u00a00.0009"),
        (0, "EUR\u00a00.00"),
    ],
)
def test_amounts_are_in_the_chosen_money_and_keep_the_exact_dollars(pusd: int, shown: str) -> None:
    with read_as(BERLIN):
        amount = formatting.money(pusd)
        assert amount == shown
        assert formatting.money(10**12, sign=True) == "+EUR\u00a00.90"
        assert figures.shown_amount(pusd) == pytest.approx(0.9 * pusd / 1e12)
    assert formatting.money(pusd).exact == amount.exact


def test_exact_dollars_are_under_the_pointer() -> None:
    amount = formatting.money(12_345_678_901_234)
    assert 'title="$12.345678901234 in the books"' in theme.rows(("APIs", amount, None))
    assert 'title="$12.345678901234 in the books"' in theme.big(amount + " lost")
    assert "title" not in theme.big("nothing")


def test_the_zone_has_its_summer_time() -> None:
    with read_as(BERLIN):
        assert formatting.moment(SUMMER_US) == "01 Jul 14:00 CEST"
        assert formatting.moment(WINTER_US) == "01 Dec 13:00 CET"
        assert formatting.zoned("from") == "from (Europe/Berlin)"
    assert now() == BOOKS


def test_charts_draw_wall_time_and_the_chosen_money() -> None:
    noon = formatting.instant(SUMMER_US)
    record = {"at": noon, "until": formatting.instant(SUMMER_US + 3_600 * 10**6), "kind": "APIs"}
    with read_as(BERLIN):
        drawn = plots.stacked_chart(
            [{**record, "usd": 10.0}], value="usd", colours={"APIs": theme.API}, title="dollars"
        ).to_dict()
    (box,) = drawn["datasets"][drawn["data"]["name"]]
    assert box["high"] == pytest.approx(9.0)
    assert box["shown"] == "EUR\u00a09.00 ($10.00)"
    assert box["at"] == (SUMMER_US // 10**6 + 2 * 3_600) * 1000
    assert drawn["encoding"]["y"]["title"] == "EUR"
    assert "$" not in drawn["encoding"]["y"]["axis"]["labelExpr"]
    tooltips = [item["title"] for item in drawn["encoding"]["tooltip"]]
    assert tooltips == ["from (Europe/Berlin)", "what", "EUR"]


def test_a_tables_money_is_named_by_its_code_or_sign() -> None:
    assert figures.money_format([12.0]) == "dollar"
    with read_as(BERLIN):
        assert figures.money_format([12.0]) == "euro"
        assert figures.money_format([0.0012]) == "EUR %.4f"
        assert figures.time_column()["type_config"]["timezone"] == "Europe/Berlin"
    with read_as(DisplaySettings(money=Currency("CHF", Fraction(1), EUR.day, "SNB", "fay"))):
        assert figures.money_format([12.0]) == "CHF %.2f"


@pytest.mark.parametrize("name", [None, "", "Nowhere/Atlantis", "../etc/passwd"])
def test_a_zone_that_nobody_knows_is_that_of_the_books(name: str | None) -> None:
    assert known_zone(name) == "UTC"
    assert known_zone("Asia/Tokyo") == "Asia/Tokyo"
