"""Invoices are read to the last place, or refused with every reason."""

import json
from collections import Counter
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spelled_instants import INSTANTS, SPELLINGS, spelled

from ledger.instants import DAY_US, time_in_days
from ledger.invoices.files import InvoiceError, InvoiceLine, parse

DAY_S = 86_400
NOV_3_S = 1_793_664_000


def bucket(day, *results):
    return {
        "object": "bucket", "start_time": NOV_3_S + day * DAY_S,
        "end_time": NOV_3_S + (day + 1) * DAY_S, "results": list(results),
    }  # fmt: skip


def result(value, item="gpt-4o-mini-2024-07-18, input", project=None, **more):
    amount = {"value": value, "currency": "usd"}
    return {"object": "organization.costs.result", "amount": amount, "line_item": item,
            "project_id": project, **more}  # fmt: skip


def page(*buckets, more=None):
    return {"object": "page", "data": list(buckets), "has_more": more is not None,
            "next_page": more}  # fmt: skip


def test_openai_costs_are_read_exactly():
    text = json.dumps(page(bucket(0, result(0.06), result(1e-7, project="proj_1")), bucket(1)))
    found = parse(text)
    assert found.format == "openai"
    assert found.lines == (
        InvoiceLine(date(2026, 11, 3), "gpt-4o-mini-2024-07-18, input", 60_000_000_000),
        InvoiceLine(date(2026, 11, 3), "gpt-4o-mini-2024-07-18, input", 100_000, "proj_1"),
    )
    assert found.places == 7
    assert found.total_pusd == 60_000_100_000


def test_pages_come_as_a_list_or_one_a_line():
    pages = [page(bucket(0, result(1)), more="p2"), page(bucket(1, result(2)))]
    as_list, as_lines = json.dumps(pages), "\n".join(map(json.dumps, pages))
    assert parse(as_list).lines == parse(as_lines).lines
    assert [line.day.day for line in parse(as_list).lines] == [3, 4]


def test_an_answer_that_goes_on_elsewhere_is_refused():
    with pytest.raises(InvoiceError, match="page=p2"):
        parse(json.dumps(page(bucket(0, result(1)), more="p2")))


def test_a_table_is_read_by_its_titles():
    text = (
        "\ufeffDate,Model,Amount,Project,Quantity,Unit\n2026-11-03,gpt-4o,12.34,p,5000,tokens\n\n"
    )
    (line,) = parse(text).lines
    assert line == InvoiceLine(
        date(2026, 11, 3), "gpt-4o", 12_340_000_000_000, "p", Decimal(5000), "tokens"
    )


def test_a_cloud_bill_is_spread_over_its_days_to_the_unit():
    text = (
        "BilledCost,BillingCurrency,ChargePeriodStart,ChargePeriodEnd,ChargeCategory,ResourceId\n"
        "10,USD,2026-11-01T00:00:00Z,2026-11-04T00:00:00Z,Purchase,vm-1\n"
        "0.5,USD,2026-11-02T03:00:00Z,2026-11-02T04:00:00Z,Usage,vm-1\n"
        "-1,USD,2026-11-02T00:00:00Z,2026-11-03T00:00:00Z,Credit,\n"
    )
    found = parse(text)
    assert found.format == "focus"
    assert found.total_pusd == 9_500_000_000_000
    assert [(line.day.day, line.item) for line in found.lines] == [
        (1, "Purchase: vm-1"), (2, "Purchase: vm-1"), (3, "Purchase: vm-1"), (2, "vm-1"),
        (2, "Credit:"),
    ]  # fmt: skip
    assert sum(line.amount_pusd for line in found.lines[:3]) == 10 * 10**12


def test_every_fault_is_told_at_once_with_its_line():
    text = (
        "date,amount,currency\n2026-11-03,1.0,EUR\nyesterday,1,USD\n2026-11-03,12;5,USD\n"
        "2026-11-03\n2026-11-03,NaN,USD\n2026-11-03,99999999,USD\n"
    )
    with pytest.raises(InvoiceError) as caught:
        parse(text)
    words = [
        "EUR", "'yesterday' is no date", "'12;5' is no amount", "not as many cells",
        "'NaN' is no amount", "more than one line can hold",
    ]  # fmt: skip
    assert len(caught.value.faults) == len(words)
    for line, (fault, word) in enumerate(zip(caught.value.faults, words, strict=True), 2):
        assert fault.startswith(f"line {line}:")
        assert word in fault


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "no column"),
        ("date,amount\n", "it has no line"),
        ("day,price\n2026-11-03,1\n", "`amount`"),
        ("{}", "no `data` list"),
        ('{"data": [{"results": []}]}', "start_time"),
        ('{"data": [{"start_time": 0, "results": [{}]}]}', "has no `amount`"),
        ("[1, 2", "line 1: no JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("date,amount\n2026-W46-1,1\n", "no date"),
        ("date,amount\n2026-11-10junk,1\n", "no date"),
        ("date,amount\n9999-12-31,1\n", "another century"),
        ("date,amount\n2026-11-10,1_2.5\n", "no amount"),
        ("date;amount\n2026-11-10;1,5\n", "no amount"),
        ("Date,Amount,Billing Currency\n2026-11-10,1,EUR\n", "EUR"),
        ("date,amount\n" + "2026-11-10,9000000\n" * 2, "than the books can post"),
        ("billedcost,BilledCost,chargeperiodstart\n", "ChargePeriodStart"),
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


def test_days_are_those_of_utc_and_tables_may_have_semicolons():
    text = "date;amount;item\n2026-11-10T23:30:00-05:00;1.5;m\n"
    (line,) = parse(text).lines
    assert (line.day, line.amount_pusd) == (date(2026, 11, 11), 1_500_000_000_000)


@pytest.mark.parametrize(
    ("pages", "word"),
    [
        ([page(bucket(0, result(1)), more="p"), page(bucket(0, result(1)))], "stands twice"),
        ([page(bucket(0, result(1)), more="p"), page(bucket(2, result(1)))], "next day"),
        ([page({**bucket(0, result(1)), "end_time": NOV_3_S + 7 * DAY_S})], "no UTC day"),
    ],
)
def test_pages_that_are_given_twice_or_left_out_are_refused(pages, word):
    with pytest.raises(InvoiceError, match=word):
        parse(json.dumps(pages))


def test_what_is_no_text_is_no_item():
    (line,) = parse(json.dumps(page(bucket(0, result(1, item={"a": 1}))))).lines
    assert line.item == ""


def by_day(text):
    found = Counter()
    for line in parse(text).lines:
        found[line.day.isoformat()] += line.amount_pusd
    return dict(found)


FOCUS_TITLES = "BilledCost,BillingCurrency,ChargePeriodStart,ChargePeriodEnd,ResourceId\n"
NOVEMBER = {f"2026-11-{day:02}": 84 * 10**12 for day in range(1, 31)}
TWO_DAYS = {"2026-11-01": 10 * 10**12, "2026-11-02": 20 * 10**12}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("focus-without-seconds", TWO_DAYS),
        ("focus-month-without-seconds", NOVEMBER),
        ("focus-with-offset", TWO_DAYS),
        ("focus-of-bigquery", TWO_DAYS),
    ],
)
def test_charges_stand_on_the_days_of_their_instants(name, expected):
    text = (Path(__file__).parent / "data" / f"{name}.csv").read_text()
    assert by_day(text) == expected


SPELLED = st.tuples(st.sampled_from(SPELLINGS), st.integers(-14 * 60, 14 * 60))


@given(INSTANTS, st.integers(0, 40 * DAY_US), SPELLED, SPELLED, st.integers(-(10**9), 10**9))
def test_days_and_dollars_are_those_of_the_instants(start_us, length_us, first, last, micros):
    start, start_us = spelled(start_us, *first)
    end, end_us = spelled(start_us + length_us, *last)
    usd = Decimal(micros).scaleb(-6)
    text = f"{FOCUS_TITLES}{usd:f},USD,{start},{end},vm\n"
    if end_us < start_us:  # the end's spelling cuts more
        with pytest.raises(InvoiceError, match="ends before it begins"):
            parse(text)
        return
    found = by_day(text)
    days = {day.isoformat(): time_us for day, time_us in time_in_days(start_us, end_us)}
    assert found.keys() == days.keys()
    assert sum(found.values()) == micros * 10**6
    for day, pusd in found.items():
        exact = Fraction(micros * 10**6 * days[day], sum(days.values()))
        assert abs(pusd - exact) < 1


def test_a_charge_over_midnight_is_split_by_its_time():
    text = (
        "BilledCost,ChargePeriodStart,ChargePeriodEnd,ConsumedQuantity,ConsumedUnit\n"
        "1.20,2026-11-01T23:45:00Z,2026-11-02T00:45:00Z,4,Hours\n"
    )
    assert [(line.day.day, line.amount_pusd, line.quantity) for line in parse(text).lines] == [
        (1, 300_000_000_000, 1), (2, 900_000_000_000, 3),
    ]  # fmt: skip


def test_a_date_that_cannot_be_read_names_row_column_and_fix():
    text = FOCUS_TITLES + "1,USD,2026-11-01,11/02/2026,vm\n"
    with pytest.raises(InvoiceError) as caught:
        parse(text)
    (fault,) = caught.value.faults
    assert fault.startswith("line 2: column `ChargePeriodEnd`: '11/02/2026' is no date: ")
    assert "write 2026-11-01" in fault
    with pytest.raises(InvoiceError, match="line 2: column `day`: 'x' is no date"):
        parse("day,amount\nx,1\n")
