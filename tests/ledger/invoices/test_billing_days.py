"""Billing days in a provider's own zone: no honest bill of them pays a claim."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.config.sections import OFFSET
from ledger.invoices.billed_parts import ClaimDemand
from ledger.invoices.billed_periods import BilledPeriod
from ledger.invoices.billing_days import (
    LEAST_MINUTES,
    MINUTE_US,
    MOST_MINUTES,
    billing_day,
    day_start_us,
    offset_minutes,
    offset_text,
)
from ledger.invoices.claim_matching import match_claims
from ledger.spans import DAY_US

DAYS = 6
offsets = st.integers(LEAST_MINUTES, MOST_MINUTES)
instants = st.integers(DAY_US, DAYS * DAY_US)
traffic = st.dictionaries(instants, st.integers(1, 90), max_size=40)
claims = st.dictionaries(st.integers(2 * DAY_US, 4 * DAY_US), st.integers(1, 500), max_size=3)


def by_day(amounts, offset_min):
    days = dict.fromkeys(range(DAYS + 2), 0)
    for at_us, pusd in amounts.items():
        days[billing_day(at_us, offset_min)] += pusd
    return days


def parts(billed, booked, claimed, offset_min):
    """What claims have of the bill of each day, with the books in days of such an offset."""
    periods = [
        BilledPeriod(day, day, True, {(day, day, "m"): pusd}) for day, pusd in billed.items()
    ]
    sure = {(day, "m"): pusd for day, pusd in by_day(booked, offset_min).items()}
    demands = [
        ClaimDemand(str(at_us), billing_day(at_us, offset_min), "m", pusd)
        for at_us, pusd in claimed.items()
    ]
    matches = match_claims(periods, sure, demands)
    return {at_us: matches[str(at_us)].part_pusd for at_us in claimed}


@given(offsets, traffic, claims)
def test_an_honest_bill_pays_no_claim_whatever_its_days_are(offset_min, booked, claimed) -> None:
    billed = by_day(booked, offset_min)
    assert set(parts(billed, booked, claimed, offset_min).values()) <= {0}


@given(offsets, traffic, claims)
def test_a_claim_that_is_billed_has_its_bill_whatever_its_days_are(
    offset_min, booked, claimed
) -> None:
    own = by_day(booked, offset_min)
    billed = {day: own[day] + more for day, more in by_day(claimed, offset_min).items()}
    assert parts(billed, booked, claimed, offset_min) == claimed


def test_the_first_days_of_traffic_show_no_surplus() -> None:
    """Red before, by days of UTC: the first day's bill has hours of the next one."""
    booked = {hour * 60 * MINUTE_US: 5 for hour in range(24 + 20, 5 * 24)}
    claimed, pacific = {44 * 60 * MINUTE_US + 1: 1000}, offset_minutes("-08:00")
    billed = by_day(booked, pacific)
    assert parts(billed, booked, claimed, 0) == {44 * 60 * MINUTE_US + 1: 8 * 5}
    assert parts(billed, booked, claimed, pacific) == {44 * 60 * MINUTE_US + 1: 0}


@given(offsets, st.integers(0, 40_000))
def test_a_day_begins_where_the_one_before_ends(offset_min, day) -> None:
    start_us = day_start_us(day, offset_min)
    assert billing_day(start_us, offset_min) == day
    assert billing_day(start_us - 1, offset_min) == day - 1


@given(offsets)
def test_offsets_are_read_as_they_are_written(offset_min) -> None:
    sign, ahead = "-" if offset_min < 0 else "+", abs(offset_min)
    text = f"{sign}{ahead // 60:02}:{ahead % 60:02}"
    assert offset_minutes(text) == offset_min
    assert re.fullmatch(OFFSET, text)
    assert offset_text(offset_min) == ("UTC" + text if offset_min else "UTC")


@pytest.mark.parametrize(
    "text", ["", "8", "08:00", "+8:00", "+14:01", "-12:01", "+08:60", "+1²:00", "Z", "+08.00"]
)
def test_what_is_no_offset_is_refused(text) -> None:
    with pytest.raises(ValueError, match="not an offset from UTC"):
        offset_minutes(text)
    assert not re.fullmatch(OFFSET, text, re.ASCII)
