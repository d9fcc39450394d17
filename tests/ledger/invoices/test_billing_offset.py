"""The zone of a bill's days is found where one alone explains it, and never a wrong one."""

import random
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.invoices.billed_periods import BilledAmount
from ledger.invoices.billing_days import billing_day
from ledger.invoices.billing_offset import OFFSETS, BookedTime, FittingOffsets, fitting_offsets
from ledger.spans import DAY_US

QUARTER_US, HOUR_US = DAY_US // 96, DAY_US // 24
FIRST, LAST = 20_000, 20_003
SPAN = (FIRST, LAST)


def fitting(*bill) -> tuple[int, ...]:
    return fitting_offsets(*bill).minutes


def traffic(seed: int, share: float, claims: float = 0.1) -> list[BookedTime]:
    """Quarters of an hour with sure costs and with claims, from before the days to behind them."""
    drawn = random.Random(seed)
    times = []
    for quarter in range((FIRST - 2) * 96, (LAST + 3) * 96):
        if drawn.random() < share:
            sure = drawn.randint(1, 99)
            most = sure + (drawn.randint(0, 99) if drawn.random() < claims else 0)
            ended = quarter + (drawn.random() < 0.5 * claims)
            model = drawn.choice("mn")
            times.append(BookedTime(quarter * QUARTER_US, ended * QUARTER_US, model, sure, most))
    return times


def bill_of(times: list[BookedTime], offset: int, seed: int = 0) -> list[BilledAmount]:
    """An honest bill: by the begin or the end of each attempt, with some of what is claimed."""
    drawn, sums = random.Random(seed), defaultdict(int)
    for time in times:
        day = billing_day(drawn.choice((time.begun_us, time.ended_us)), offset)
        if FIRST <= day <= LAST:
            sums[day, time.model] += drawn.randint(time.sure_pusd, time.most_pusd)
    return [BilledAmount(day, model, pusd) for (day, model), pusd in sums.items()]


@given(st.integers(0, 9999), st.sampled_from(OFFSETS), st.sampled_from((0.02, 0.3, 1.0)))
def test_an_honest_bill_fits_its_own_zone_whatever_the_traffic(seed, offset, share) -> None:
    times = traffic(seed, share)
    assert offset in fitting(bill_of(times, offset, seed), SPAN, times, 0)


@pytest.mark.parametrize("offset", OFFSETS[::4])
def test_dense_traffic_tells_the_zone(offset) -> None:
    times = traffic(7, 1.0, claims=0.0)
    assert fitting(bill_of(times, offset), SPAN, times, 0) == (offset,)


def test_what_did_not_pass_here_hides_no_zone() -> None:
    times = traffic(7, 1.0, claims=0.0)
    amounts = [*bill_of(times, 480), BilledAmount(FIRST, "elsewhere", 10**6)]
    assert fitting(amounts, SPAN, times, 0) == (480,)
    less = [amount._replace(pusd=amount.pusd // 2) for amount in amounts[:-1]]
    assert fitting(less, SPAN, times, 0) == ()


def test_lines_that_name_no_model_may_be_of_any() -> None:
    times = traffic(7, 1.0, claims=0.0)
    sums: dict[int, int] = defaultdict(int)
    for amount in bill_of(times, -300):
        sums[amount.day] += amount.pusd
    amounts = [BilledAmount(day, "usage", pusd) for day, pusd in sums.items()]
    assert fitting(amounts, SPAN, times, 0) == (-300,)


def test_a_charge_of_several_days_is_compared_with_all_of_them() -> None:
    times = traffic(7, 1.0, claims=0.0)
    whole = sum(amount.pusd for amount in bill_of(times, 60))
    days = range(FIRST, LAST + 1)
    amounts = [
        BilledAmount(day, "usage", whole if day == FIRST else 0, stretch=SPAN) for day in days
    ]
    found = fitting(amounts, SPAN, times, 0)
    assert 60 in found
    assert len(found) < len(OFFSETS)


def test_amounts_are_rounded_and_credits_say_nothing_of_a_zone() -> None:
    times = traffic(7, 1.0, claims=0.0)
    rounded = [amount._replace(pusd=round(amount.pusd, -2)) for amount in bill_of(times, 120)]
    assert 120 in fitting(rounded, SPAN, times, 50)
    credit = BilledAmount(FIRST, "m", -500)
    assert fitting([*bill_of(times, 120), credit], SPAN, times, 0) == (120,)


def test_without_bookings_each_zone_fits_nothing_and_none_what_is_billed() -> None:
    assert fitting([], SPAN, [], 0) == OFFSETS
    assert fitting([BilledAmount(FIRST, "m", 5)], SPAN, [], 0) == OFFSETS


@pytest.mark.parametrize("ahead", [60, -60])
@pytest.mark.parametrize("before", OFFSETS[2:24:3])
@pytest.mark.parametrize("at", range(FIRST + 1, LAST + 1))
def test_a_change_of_clocks_is_told_where_no_zone_explains_a_bill(before, ahead, at) -> None:
    """The bill of a provider whose night before the day `at` has an hour more or less."""
    times = traffic(7, 1.0, claims=0.0)
    change_us = at * DAY_US - before * 60 * 10**6
    sums: dict[tuple[int, str], int] = defaultdict(int)
    for time in times:
        day = billing_day(time.begun_us, before if time.begun_us < change_us else before + ahead)
        if FIRST <= day <= LAST:
            sums[day, time.model] += time.sure_pusd
    amounts = [BilledAmount(day, model, pusd) for (day, model), pusd in sums.items()]
    found = fitting_offsets(amounts, SPAN, times, 0)
    assert found == FittingOffsets(tuple(sorted((before, before + ahead))), changes=True)
