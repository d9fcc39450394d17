"""A rate has a day and a source; old ones are stale, those taken back are gone."""

from datetime import date
from fractions import Fraction

from ledger.currencies import CODES, FRESH_DAYS, currencies, unknown
from ledger.manual_entries import CURRENCY, ManualEntry

EUR = {"per_usd": "0.9213", "day": "2026-11-02", "source": "ECB"}


def test_money_that_there_is_not_is_told_with_the_fix() -> None:
    assert [unknown(name) for name in ("EUR", "JPY", "XOF", "ZWG")] == [None] * 4
    for wrong in ("EUX", "eur", "", "DEM"):
        assert f"`{wrong}` is not a currency code of ISO 4217" in (unknown(wrong) or "")
    assert "the books are in USD" in (unknown("USD") or "")
    assert len(CODES) > 150
    assert all(len(item) == 3 and item.isupper() for item in CODES)


def test_the_newest_rate_of_each_counts() -> None:
    found = [
        ManualEntry(3, CURRENCY + "GBP", None, 5, 5, "ada"),
        ManualEntry(2, CURRENCY + "EUR", EUR, 5, 5, "ada"),
        ManualEntry(1, CURRENCY + "GBP", {**EUR, "per_usd": "0.8"}, 5, 5, "ada"),
    ]
    (item,) = currencies(found, 9)
    assert (item.code, item.per_usd, item.source) == ("EUR", Fraction(9213, 10_000), "ECB")
    assert [item.stale(date(2026, 11, 2 + n)) for n in (FRESH_DAYS, FRESH_DAYS + 1)] == [
        False,
        True,
    ]


def test_the_newest_day_counts_whenever_it_was_entered() -> None:
    """A rate of last month that somebody adds for the record is not what a dollar is at present."""
    said = [("2026-11-02", "0.92"), ("2026-10-01", "0.80"), ("2026-11-02", "0.93")]
    entered = [
        ManualEntry(
            n, CURRENCY + "EUR", {"per_usd": rate, "day": day, "source": "ECB"}, n, n, "ada"
        )
        for n, (day, rate) in enumerate(said, 1)
    ]
    stood = [currencies(entered[n - 1 :: -1], 9)[0].per_usd for n in (1, 2, 3)]
    assert [float(item) for item in stood] == [0.92, 0.92, 0.93]
