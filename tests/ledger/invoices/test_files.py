"""Invoices are read to the last place, or refused with every reason."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.invoices.files import InvoiceError, parse

DAY_S = 86_400
NOV_3_S = 1_793_664_000


def test_every_fault_is_told_at_once_with_its_line():
    text = (
        "date,amount,currency\n2026-11-03,1.0,EUR\nyesterday,1,USD\n2026-11-03,12;5,USD\n"
        "2026-11-03\n2026-11-03,NaN,USD\n2026-11-03,99999999,USD\n"
    )
    with pytest.raises(InvoiceError) as caught:
        parse(text)
    words = [
        "EUR", "'yesterday' is not a date", "'12;5' is not an amount", "not as many cells",
        "'NaN' is not an amount", "more than one line can hold",
    ]  # fmt: skip
    assert len(caught.value.faults) == len(words)
    for line, (fault, word) in enumerate(zip(caught.value.faults, words, strict=True), 2):
        assert fault.startswith(f"line {line}:")
        assert word in fault


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "the file is empty"),
        ("date,amount\n", "it has no line"),
        ("day,price\n2026-11-03,1\n", "`amount`"),
        ("{}", "no `data` list"),
        ('{"data": [{"results": []}]}', "start_time"),
        ('{"data": [{"start_time": 0, "results": [{}]}]}', "has no `amount`"),
        ("[1, 2", "line 1: no JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("date,amount\n2026-W46-1,1\n", "not a date"),
        ("date,amount\n2026-11-10junk,1\n", "not a date"),
        ("date,amount\n9999-12-31,1\n", "another century"),
        ("date,amount\n2026-11-10,1_2.5\n", "not an amount"),
        ("date;amount\n2026-11-10;1,5\n", "not an amount"),
        ("Date,Amount,Billing Currency\n2026-11-10,1,EUR\n", "EUR"),
        ("date,amount\n" + "2026-11-10,9000000\n" * 2, "than the books can post"),
        ("billedcost,BilledCost,chargeperiodstart\n", "line 1, column `billedcost`: is named tw"),
        ("BilledCost\n1\n", "no column `ChargePeriodStart`"),
        ("BilledCost,ChargePeriodStart,ChargePeriodEnd\n1,2026-01-02,2026-01-01\n", "ends before"),
        ("BilledCost,ChargePeriodStart,ChargePeriodEnd\n1,2020-01-01,2026-01-01\n", "split it"),
    ],
)
def test_what_is_no_invoice_is_refused(text, word):
    with pytest.raises(InvoiceError, match=word):
        parse(text)


def test_a_long_list_of_faults_is_cut():
    with pytest.raises(InvoiceError, match="and 5 more"):
        parse("date,amount\n" + "x,1\n" * 25)


def test_a_date_that_cannot_be_read_names_row_column_and_fix():
    text = "BilledCost,ChargePeriodStart,ChargePeriodEnd\n1,2026-11-01,11/02/2026\n"
    with pytest.raises(InvoiceError) as caught:
        parse(text)
    (fault,) = caught.value.faults
    assert fault.startswith("line 2: column `ChargePeriodEnd`: '11/02/2026' is not a date: ")
    assert "write 2026-11-01" in fault
    with pytest.raises(InvoiceError, match="line 2: column `day`: 'x' is not a date"):
        parse("day,amount\nx,1\n")


FOCUS = "BilledCost,ChargePeriodStart,ChargePeriodEnd,ConsumedQuantity\n"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("date,amount,item\n2026-11-01,1," + "x" * 200_000, "line 2: field larger than"),
        ("date,amount\n2026-11-01,1\0\n", "line 2: has a NUL"),
        ('date,amount\n2026-11-01,"1\n', "line 2: unexpected end"),
        ("date,amount,amount\n2026-11-01,1,2\n", "line 1, column `amount`: is named twice"),
        ("date,amount,cost\n2026-11-01,1,2\n", "line 2: the columns `amount` and `cost` differ"),
        ("day,date,cost\n2026-11-01,2026-11-02,2\n", "line 2: the columns `date` and `day` differ"),
        ("date,amount,currency,billing_currency\n2026-11-01,10,,EUR\n", "line 2: the curr.*EUR"),
        (FOCUS + "1,2026-11-01,2026-11-04,1e999999\n", "line 2: '1e999999' is more than"),
        ("date,amount,quantity\n2026-11-01,1,1e999999999\n", "line 2: '1e9.*' is more than"),
        ("date,amount,quantity\n2026-11-01,1,1e-999999999\n", "line 2: '1e-9.*' is more than"),
        ("date,amount,quantity\n2026-11-01,1,0e999999999\n", "line 2: '0e9.*' is more than"),
        ("date,amount\n2026-11-01,1e999999999999999999999\n", "line 2: '1e9.*' is more than"),
        ("date,amount\n2026-11-01,1e-99999999\n", "line 2: '1e-9.*' is more than"),
        ("date,amount\n2026-11-01," + "9" * 100_000, "line 2: '99.* is more than"),
        ("date,amount\n2026-11-01" + " " * 300 + "x,1\n", "line 2: column `date`"),
        ("date,amount\n2026-11-01,1\n\ud800,1\n", "line 3: it has a character that is not text"),
    ],
)
def test_a_table_that_could_be_misread_is_refused_with_its_line(text, word):
    """Red before: most raised another error, took the last of two cells, or filled the memory."""
    with pytest.raises(InvoiceError, match=word) as caught:
        parse(text)
    assert all(len(fault) < 300 for fault in caught.value.faults)


def costs(text):
    """A page with one bucket, of JSON text."""
    start = f'{{"data": [{{"start_time": {NOV_3_S}, "results": ['
    return f"{start}{text}]}}]}}"


NASTY = st.sampled_from([
    "", " ", "1", "-1.5", "1e9", "1e999999", "1e-999999999", "9" * 400, "NaN", "2026-11-01", "x",
    "2026-11-01T25:00", "\r", "\n", '"', ",", ";", "\0", "\ud800", "EUR", "\uff11", "0e99999",
])  # fmt: skip
TITLES = st.sampled_from([
    "date", "day", "amount", "cost", "currency", "quantity", "item", "BilledCost",
    "ChargePeriodStart", "ChargePeriodEnd", "ConsumedQuantity", "ChargeCategory", " Date ", "",
])  # fmt: skip
TABLES = st.builds(
    lambda titles, rows, mark: "\n".join(mark.join(row) for row in (titles, *rows)),
    st.lists(TITLES, min_size=1, max_size=6), st.lists(st.lists(NASTY, max_size=6), max_size=4),
    st.sampled_from(",;\t"),
)  # fmt: skip
MEMBERS = st.sampled_from([
    "data", "results", "start_time", "end_time", "amount", "value", "currency", "quantity",
    "line_item", "has_more", "next_page",
])  # fmt: skip
JSON = st.recursive(
    st.one_of(
        NASTY.map(json.dumps), st.integers(-9, 9).map(str),
        st.sampled_from([str(NOV_3_S), "1e99999999", "null", "true", "NaN"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]"),
        st.lists(st.tuples(MEMBERS, inner), max_size=5).map(
            lambda pairs: "{" + ",".join(f'"{name}":{value}' for name, value in pairs) + "}"
        ),
    ),
    max_leaves=12,
)  # fmt: skip
PAGES = st.one_of(JSON, JSON.map(costs), JSON.map(lambda value: costs(f'{{"amount":{value}}}')))


@given(st.one_of(TABLES, PAGES), st.sampled_from([None, "openai", "csv", "focus"]))
def test_whatever_a_file_says_is_read_or_refused(text, format_):
    try:
        found = parse(text, format_)
    except InvoiceError:
        return
    for line in found.lines:
        assert line.quantity is None or len(f"{line.quantity:f}") < 100
        assert "\0" not in f"{line.item}{line.project}{line.unit}"
        f"{line.item}{line.project}{line.unit}".encode()
