"""A cloud's charges stand on the days of their instants, to the unit."""

from collections import Counter
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from spelled_instants import INSTANTS, SPELLINGS, spelled

from ledger.instants import DAY_US, time_in_days
from ledger.invoices.files import InvoiceError, parse


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
    text = (Path(__file__).parents[1] / "data" / f"{name}.csv").read_text()
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


def test_each_row_is_a_charge_of_its_own():
    rows = "1,2026-11-01,2026-11-03\n1,2026-11-03,2026-11-04\n1,2026-11-04,2026-11-05\n"
    lines = parse("BilledCost,ChargePeriodStart,ChargePeriodEnd\n" + rows).lines
    assert [line.charge for line in lines] == [1, 1, 2, 3]
