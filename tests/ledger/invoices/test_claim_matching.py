"""Claims are matched with the bills in their reach; nothing of a bill is given twice."""

from hypothesis import given
from hypothesis import strategies as st

from ledger.invoices.billed_periods import BilledPeriod
from ledger.invoices.claim_matching import (
    PATIENCE_DAYS,
    ClaimDemand,
    UnpostedBill,
    match_claims,
)


def period(first, last=None, **by_model):
    return BilledPeriod(first, first if last is None else last, True, by_model)


def claim(day, surplus, name="a", model="m"):
    return ClaimDemand(name, day, model, surplus)


def only(periods, sure, demand, *unposted):
    return match_claims(periods, sure, [demand], unposted)[demand.attempt_id]


def test_a_months_bill_that_is_spread_over_its_days_is_matched_as_one():
    month = period(0, 29, m=3_000)
    sure = {(4, "m"): 1_400, (25, "m"): 1_400}
    assert only([month], sure, claim(4, 200)) == (200, None)


def test_bookings_of_an_edge_may_be_billed_in_the_neighbour_before_claims_are():
    days = [period(4, m=0), period(5, m=90), period(6, m=0)]
    assert only(days, {(4, "m"): 60}, claim(5, 80)) == (30, None)
    assert only(days, {(5, "m"): 60}, claim(5, 80)) == (30, None)
    assert only(days, {(6, "m"): 60}, claim(6, 80)).part_pusd == 30


def test_shortages_move_no_further_than_a_day():
    days = [period(day, m=100 if day == 9 else 0) for day in range(12)]
    assert only(days, {(4, "m"): 60}, claim(9, 100)) == (100, None)


def test_a_bill_without_models_is_of_all_of_them():
    days = [period(4), period(5, total=150), period(6)]
    assert only(days, {(5, "m"): 30, (5, "n"): 50}, claim(5, 100)) == (70, None)


def test_a_credit_of_no_model_lowers_what_models_have():
    days = [period(4), period(5, m=100, credit=-40), period(6)]
    assert only(days, {}, claim(5, 100)) == (60, None)


def test_a_bill_of_another_model_is_no_bill_of_the_claim():
    days = [period(4), period(5, n=100), period(6)]
    assert only(days, {(5, "n"): 10}, claim(5, 100)) == (0, None)


def test_a_bill_that_never_comes_is_not_waited_for():
    assert only([period(40)], {}, claim(5, 9)).waits_for == "no invoice of 1970-01-05 is posted"
    later = [period(6 + PATIENCE_DAYS)]
    assert only(later, {}, claim(5, 9), UnpostedBill(1, 5, 5)) == (0, None)
    assert "is posted" in only([period(5 + PATIENCE_DAYS)], {}, claim(5, 9)).waits_for


AMOUNTS = st.integers(-30, 90)
MODELS = st.sampled_from(["m", "n"])
BILLED = st.dictionaries(st.sampled_from(["m", "n", "other"]), AMOUNTS, max_size=3)


@given(
    spans=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), BILLED), max_size=7),
    sure=st.dictionaries(st.tuples(st.integers(0, 20), MODELS), st.integers(0, 50)),
    claims=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 60), MODELS), max_size=7),
)
def test_no_more_is_given_than_bills_have_beyond_what_is_sure(spans, sure, claims):
    """Property: for each run of bills together, and for each claim alone."""
    periods, day = [], 0
    for gap, length, by_model in spans:
        periods.append(period(day + gap, day + gap + length - 1, **by_model))
        day += gap + length
    demands = [claim(at, pusd, str(n), model) for n, (at, pusd, model) in enumerate(claims)]
    matches = match_claims(periods, sure, demands)
    assert all(0 <= matches[each.attempt_id].part_pusd <= each.surplus_pusd for each in demands)
    beyond = 0
    for each in periods:
        models = {name for _, name in sure} | {name for _, _, name in claims}
        named = dict.fromkeys(models, 0)
        for (at, name), pusd in sure.items():
            if each.has(at):
                named[name] -= pusd
        untold = sum(pusd for name, pusd in each.by_model.items() if name not in models)
        for name in models:
            named[name] += each.by_model.get(name, 0)
        over = sum(max(0, pusd) for pusd in named.values())
        beyond += max(over, over + untold) if untold > 0 else max(0, over + untold)
    assert sum(match.part_pusd for match in matches.values()) <= beyond
    for demand in demands:
        if matches[demand.attempt_id].part_pusd == demand.surplus_pusd:
            assert matches[demand.attempt_id].waits_for is None


@given(
    sure=st.dictionaries(st.tuples(st.integers(1, 28), MODELS), st.integers(0, 50)),
    claims=st.lists(st.tuples(st.integers(2, 27), st.integers(1, 60), MODELS, st.integers(-1, 1))),
    whole=st.booleans(),
)
def test_an_honest_bill_on_days_about_settles_every_claim_in_full(sure, claims, whole):
    """Property: each claim billed the day before, the day itself or the next; bookings in place."""
    by_day = {day: {"m": 0, "n": 0} for day in range(30)}
    for (day, model), pusd in sure.items():
        by_day[day][model] += pusd
    for day, pusd, model, ahead in claims:
        by_day[day + ahead][model] += pusd
    demands = [claim(day, pusd, str(n), model) for n, (day, pusd, model, _) in enumerate(claims)]
    if whole:  # one bill of the month
        sums = {name: sum(day[name] for day in by_day.values()) for name in ("m", "n")}
        periods = [period(0, 29, **sums)]
    else:
        periods = [period(day, **by_model) for day, by_model in by_day.items()]
    matches = match_claims(periods, sure, demands)
    assert all(matches[each.attempt_id] == (each.surplus_pusd, None) for each in demands)
