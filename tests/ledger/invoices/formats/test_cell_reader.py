"""Figures are exact and of limited length; what is no figure is named with its place."""

from decimal import Decimal

import pytest

from ledger.invoices.formats.cell_reader import SHOWN, CellReader, show_cell


@pytest.mark.parametrize(
    ("value", "pusd", "places"),
    [
        ("1.5", 1_500_000_000_000, 1), (" -0.10 ", -100_000_000_000, 1), (2, 2 * 10**12, 0),
        (Decimal("1E-7"), 100_000, 7), ("1e3", 10**15, 0), ("0.0000000000004", 0, 13),
        ("1" + "0" * 30, None, 0), (None, None, 0), (True, None, 0), ([1], None, 0), ("", None, 0),
        ("1,5", None, 0), ("Infinity", None, 0), ("1e-61", None, 0), ("1" * 300, None, 0),
    ],
)  # fmt: skip
def test_amounts(value, pusd, places):
    reader = CellReader()
    assert reader.read_amount(value, "line 7") == pusd
    assert reader.places == places
    assert [fault.partition(":")[0] for fault in reader.faults] == ["line 7"] * (pusd is None)


@pytest.mark.parametrize(
    ("currencies", "read"),
    [
        ((), True), ((None, ""), True), (("usd", " USD "), True), (("", "EUR"), False),
        (("USD", "EUR"), False), ((5,), False), (({"a": 1},), False),
    ],
)  # fmt: skip
def test_every_currency_that_is_told_must_be_dollars(currencies, read):
    """Red before: an empty cell hid the next one, and a number raised another error."""
    reader = CellReader()
    assert (reader.read_amount("1", "line 2", currencies) is not None) is read
    assert bool(reader.faults) is not read


@pytest.mark.parametrize(
    "text", ["1e24", "0e25", "1e-61", "9" * 25, "0." + "1" * 61, "1e9999999999"]
)
def test_a_quantity_has_limits(text):
    reader = CellReader()
    assert reader.read_quantity(text, "line 2") is None
    assert reader.faults == [f"line 2: {show_cell(text)} is more than one line can hold"]


@pytest.mark.parametrize("text", ["", None, "0", "9" * 24, "0." + "1" * 60, "-1e23", "1.50"])
def test_quantities_are_kept_as_they_are(text):
    reader = CellReader()
    assert reader.read_quantity(text, "line 2") == (Decimal(text) if text else None)
    assert reader.faults == []


def test_instants_and_texts_have_their_column_and_limits():
    reader = CellReader()
    assert reader.read_instant("1970-01-02", "line 2", "day") is None
    assert reader.read_instant("2026-11-01" + " " * 400, "line 3", "day") is None
    assert reader.read_instant("2000-01-01", "line 4", "day") == 946_684_800_000_000
    texts = [reader.read_text(value, "line 5") for value in ("a\n", 5, None, "\0", "\ud800")]
    assert texts == ["a\n", None, None, None, None]
    places = [fault.partition(":")[0] for fault in reader.faults]
    assert places == ["line 2", "line 3", "line 5", "line 5"]
    assert all(len(fault) < 6 * SHOWN for fault in reader.faults)
