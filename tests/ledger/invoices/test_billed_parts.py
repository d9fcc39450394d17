"""Bills are shared by day: bookings first, then claims in reach; nothing is given twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.invoices.billed_parts import UNTOLD, ClaimDemand, share_bills
from ledger.invoices.billed_periods import BilledAmount, PostedBill, billed_periods

MONTH = range(31)
SURE = {(day, "m"): 100 for day in MONTH}


def month(changes=(), item="m"):
    """Return a month's bill with a line a day: 100, and what a change says beyond it."""
    changed = dict(changes)
    lines = [BilledAmount(day, item, 100 + changed.get(day, 0)) for day in MONTH]
    return billed_periods([PostedBill(0, 30, False, lines)])


def claim(day, surplus, name="a", model="m"):
    return ClaimDemand(name, day, model, surplus)


def part(periods, sure, uncertain, demand):
    return share_bills(periods, sure, uncertain, [demand]).parts[demand.attempt_id]


@pytest.mark.parametrize("item", ["m", "usage"])
@pytest.mark.parametrize(
    ("changes", "got"),
    [
        ({5: 40}, 40),
        ({4: 40}, 40),
        ({6: 40}, 40),
        ({7: 40}, 0),
        ({20: 40}, 0),  # a surplus that its reach does not include
        ({5: 40, 20: -40}, 40),  # a shortage far away
        ({5: 40, 6: -40}, 0),  # a booking of the next day that was billed on this one
        ({5: 40, 7: -40}, 40),
        ({4: 10, 5: 10, 6: 10, 20: 10}, 30),
    ],
)
def test_a_claim_is_paid_by_the_days_in_its_reach_alone(item, changes, got):
    assert part(month(changes, item), SURE, {}, claim(5, 40)) == got


@pytest.mark.parametrize("day", [4, 5, 6, 25])
def test_what_an_estimated_row_really_cost_pays_no_claim(day):
    """It was booked at 40, by an estimate; all of its bill is honest."""
    sure = SURE | {(day, "m"): 60}
    assert part(month(), sure, {(day, "m"): 40}, claim(day, 40)) == 0
    assert part(month({day: 25}), sure, {(day, "m"): 40}, claim(day, 40)) == 25


def test_an_uncertain_booking_far_away_hides_nothing():
    assert part(month({5: 40}), SURE, {(20, "m"): 900}, claim(5, 40)) == 40


def test_days_and_models_that_lack_something_are_short():
    periods = month({20: -40})
    assert share_bills(periods, SURE, {}, []).short == {(20, "m")}
    untold = share_bills(month({20: -40}, "usage"), SURE, {}, []).short
    assert untold == {(20, "m")} | {(day, UNTOLD) for day in MONTH}
    assert share_bills(periods, {}, SURE, []).short == set()


def test_a_charge_for_the_whole_period_pays_any_day_of_it():
    lines = [BilledAmount(day, "m", 100, (0, 30)) for day in MONTH]
    periods = billed_periods([PostedBill(0, 30, False, lines)])
    sure = {(4, "m"): 1_400, (25, "m"): 1_400}
    assert part(periods, sure, {}, claim(4, 400)) == 300


@pytest.mark.parametrize(("item", "got"), [("credit", 10), ("m", 10), ("n", 40)])
def test_a_credit_lowers_what_the_period_has_of_its_model(item, got):
    lines = [*month({5: 40})[0].amounts.items()]
    amounts = [BilledAmount(first, name, pusd) for (first, _, name), pusd in lines if first < 30]
    bill = PostedBill(0, 30, False, [*amounts, BilledAmount(30, item, -30)])
    sure = {key: pusd for key, pusd in SURE.items() if key[0] < 30} | {(9, "n"): 0}
    assert part(billed_periods([bill]), sure, {}, claim(5, 40)) == got


DAYS = st.integers(1, 28)
MODELS = st.sampled_from(["m", "n"])
AHEAD = st.integers(-1, 1)
BOOKED = st.dictionaries(st.tuples(DAYS, MODELS), st.integers(0, 50))


@given(
    sure=BOOKED,
    real=st.lists(st.tuples(DAYS, MODELS, st.integers(0, 40), st.integers(0, 40), AHEAD)),
    lies=st.lists(st.tuples(DAYS, st.integers(1, 99), MODELS), max_size=5),
    named=st.booleans(),
)
def test_an_honest_bill_of_uncertain_rows_pays_no_lie(sure, real, lies, named):
    """Property: each uncertain row is billed at its cost or less, on a day about its settle."""
    billed, uncertain = dict(sure), {}
    for day, model, pusd, less, ahead in real:
        uncertain[day, model] = uncertain.get((day, model), 0) + pusd
        key = day + ahead, model
        billed[key] = billed.get(key, 0) + max(0, pusd - less)
    lines = [BilledAmount(day, name if named else "x", n) for (day, name), n in billed.items()]
    periods = billed_periods([PostedBill(0, 30, False, lines)])
    demands = [claim(day, pusd, str(n), model) for n, (day, pusd, model) in enumerate(lies)]
    assert not any(share_bills(periods, sure, uncertain, demands).parts.values())


@given(
    billed=st.lists(st.integers(-30, 90), min_size=12, max_size=12),
    sure=st.lists(st.integers(0, 50), min_size=12, max_size=12),
    uncertain=st.lists(st.integers(0, 50), min_size=12, max_size=12),
    claims=st.lists(st.tuples(st.integers(0, 11), st.integers(1, 60)), max_size=7),
    length=st.integers(1, 12),
    item=st.sampled_from(["m", "usage"]),
)
def test_claims_get_no_more_than_days_in_reach_have_beyond_what_is_sure(
    billed, sure, uncertain, claims, length, item
):
    """Property: for any stretch of days, and however these days are cut into bills."""
    bills = [
        PostedBill(first, min(first + length, 12) - 1, False, [
            BilledAmount(day, item, billed[day]) for day in range(first, min(first + length, 12))
        ])
        for first in range(0, 12, length)
    ]  # fmt: skip
    demands = [claim(day, pusd, str(n)) for n, (day, pusd) in enumerate(claims)]
    by_day = {(day, "m"): pusd for day, pusd in enumerate(sure)}
    maybe = {(day, "m"): pusd for day, pusd in enumerate(uncertain)}
    parts = share_bills(billed_periods(bills), by_day, maybe, demands).parts
    assert all(0 <= parts[each.attempt_id] <= each.surplus_pusd for each in demands)
    beyond = [max(0, had - cost) for had, cost in zip(billed, sure, strict=True)]
    for first in range(12):
        for last in range(first, 12):
            got = sum(parts[each.attempt_id] for each in demands if first <= each.day <= last)
            assert got <= sum(beyond[max(0, first - 1) : last + 2])


@given(
    sure=BOOKED,
    claims=st.lists(st.tuples(st.integers(2, 27), st.integers(1, 60), MODELS, AHEAD)),
    whole=st.booleans(),
)
def test_an_honest_bill_pays_every_claim_in_full(sure, claims, whole):
    """Property: each claim billed the day before, the day itself or the next; bookings in place."""
    billed = {(day, model): 0 for day in range(30) for model in ("m", "n")} | sure
    for day, pusd, model, ahead in claims:
        billed[day + ahead, model] += pusd
    lines = [BilledAmount(day, model, pusd) for (day, model), pusd in billed.items()]
    spans = [(0, 29)] if whole else [(day, day) for day in range(30)]
    periods = billed_periods(
        [
            PostedBill(first, last, False, [line for line in lines if first <= line.day <= last])
            for first, last in spans
        ]
    )
    demands = [claim(day, pusd, str(n), model) for n, (day, pusd, model, _) in enumerate(claims)]
    parts, short = share_bills(periods, sure, {}, demands)
    assert parts == {each.attempt_id: each.surplus_pusd for each in demands}
    assert not short
