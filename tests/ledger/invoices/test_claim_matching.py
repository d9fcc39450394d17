"""Claims are matched with the bills in their reach; nothing of a bill is given twice."""

from hypothesis import given
from hypothesis import strategies as st

from ledger.invoices.billed_parts import ClaimDemand
from ledger.invoices.billed_periods import BilledPeriod
from ledger.invoices.claim_matching import (
    PATIENCE_DAYS,
    READ_DAYS,
    UnpostedBill,
    match_claims,
    reached_places,
)


def period(first, last=None, *, whole=True, **by_model):
    """Return a period whose amounts are stated for all of its days."""
    last = first if last is None else last
    amounts = {(first, last, model): pusd for model, pusd in by_model.items()}
    return BilledPeriod(first, last, whole, amounts)


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


def test_parts_alone_say_all_once_they_have_what_was_booked():
    about = [period(4), period(6)]
    for part, waits in (
        (period(5, whole=False, m=50), True),
        (period(5, whole=False, m=90), False),
    ):
        match = only([about[0], part, about[1]], {(5, "m"): 60}, claim(5, 80))
        assert match.part_pusd == (0 if waits else 30)
        assert (match.waits_for is not None) is waits
    nothing = period(5, whole=False, m=0)
    assert only([about[0], nothing, about[1]], {}, claim(5, 80)).waits_for is None
    days = [about[0], nothing, about[1]]
    assert match_claims(days, {}, [claim(5, 80)], (), {(5, "m"): 1})["a"].waits_for is not None


def test_a_credit_alone_is_no_later_bill():
    days = [period(4), period(5, m=0), period(6)]
    for pusd, waits in ((-1, True), (0, False), (9, False)):
        found = only([*days, period(30, whole=False, m=pusd)], {(5, "m"): 60}, claim(5, 80))
        assert (found.waits_for is not None) is waits


def test_bookings_of_days_about_claims_are_reached():
    days = [period(day) for day in range(40)]
    near = range(20 - READ_DAYS - 1, 20 + READ_DAYS + 2)
    assert reached_places(days, [claim(20, 1)]) == [*near]
    assert reached_places([period(0, 30), period(31, 60), period(61, 90)], [claim(5, 1)]) == [0, 1]
    assert reached_places(days, []) == []


@given(
    sure=st.dictionaries(st.integers(0, 20), st.integers(0, 50)),
    billed=st.dictionaries(st.integers(0, 20), st.integers(-30, 90)),
    claims=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 60)), max_size=7),
)
def test_a_claim_that_is_billed_in_whole_waits_for_nothing(sure, billed, claims):
    demands = [claim(at, pusd, str(n)) for n, (at, pusd) in enumerate(claims)]
    days = [period(day, m=pusd) for day, pusd in sorted(billed.items())]
    matches = match_claims(days, {(day, "m"): pusd for day, pusd in sure.items()}, demands)
    for demand in demands:
        match = matches[demand.attempt_id]
        assert match.part_pusd < demand.surplus_pusd or match.waits_for is None
