"""Posted bills make periods; parts are added in either order, a correction replaces its days."""

from hypothesis import given
from hypothesis import strategies as st

from ledger.invoices.billed_periods import BilledAmount, PostedBill, billed_periods, period_at


def bill(first, last, adds=False, *amounts):
    return PostedBill(first, last, adds, [BilledAmount(*amount) for amount in amounts])


def test_bills_that_only_touch_are_periods_of_their_own():
    periods = billed_periods([bill(1, 1, False, (1, "m", 5)), bill(2, 3, False, (3, "m", 7))])
    assert [period[:3] for period in periods] == [(1, 1, True), (2, 3, True)]
    assert [period.amounts for period in periods] == [{(1, 1, "m"): 5}, {(3, 3, "m"): 7}]
    assert [period_at(periods, day) for day in range(5)] == [None, 0, 1, 1, None]


def test_a_correction_of_some_days_joins_their_period_and_drops_what_was_said_of_them():
    month = bill(1, 30, False, (3, "m", 10), (9, "m", 20))
    part = bill(2, 4, True, (3, "m", 1))
    correction = bill(8, 31, False, (9, "m-2024-08-06, input", 25))
    (period,) = billed_periods([month, part, correction])
    assert period == (1, 31, True, {(3, 3, "m"): 11, (9, 9, "m"): 25})


def test_a_charge_of_several_days_is_an_amount_of_each_stretch_that_was_not_replaced():
    """Red before: what is left of it stayed an amount of all its days, the replaced ones, too."""
    shares = [BilledAmount(day, "m", 5, (1, 6)) for day in range(1, 7)]
    charge = PostedBill(1, 6, False, shares)
    (period,) = billed_periods([charge, bill(3, 3, False, (3, "m", 9))])
    assert period.amounts == {(1, 2, "m"): 10, (4, 6, "m"): 15, (3, 3, "m"): 9}
    (period,) = billed_periods([charge, bill(3, 3), bill(5, 9, False, (5, "m", 1))])
    assert period.amounts == {(1, 2, "m"): 10, (4, 4, "m"): 5, (5, 5, "m"): 1}
    (period,) = billed_periods([charge, charge._replace(adds=True), bill(1, 4)])
    assert period.amounts == {(5, 6, "m"): 20}


STRETCHES = st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), max_size=4)
CORRECTIONS = st.lists(st.tuples(st.integers(0, 14), st.integers(0, 5)), max_size=4)


@given(stretches=STRETCHES, corrections=CORRECTIONS)
def test_no_amount_is_of_a_day_that_was_replaced_after_it(stretches, corrections):
    charges = [
        PostedBill(
            first, first + more, True,
            [BilledAmount(day, "m", 1, (first, first + more))
             for day in range(first, first + more + 1)],
        )
        for first, more in stretches
    ]  # fmt: skip
    replaced = {day for first, more in corrections for day in range(first, first + more + 1)}
    periods = billed_periods([*charges, *(bill(at, at + more) for at, more in corrections)])
    pools = [key for period in periods for key in period.amounts]
    assert all(replaced.isdisjoint(range(first, last + 1)) for first, last, _ in pools)
    owed = sum(sum(period.amounts.values()) for period in periods)
    days = [day for charge in charges for day in range(charge.first, charge.last + 1)]
    assert owed == sum(day not in replaced for day in days)


def test_days_of_parts_alone_are_not_whole():
    periods = billed_periods([bill(3, 4, False, (3, "m", 1)), bill(1, 9, True, (1, "m", 2))])
    assert periods == [
        (1, 2, False, {(1, 1, "m"): 2}), (3, 4, True, {(3, 3, "m"): 1}), (5, 9, False, {}),
    ]  # fmt: skip


BILLS = st.lists(
    st.builds(
        lambda first, length, adds, pusd: bill(
            first, first + length, adds, (first, "m", pusd), (first + length, "n", pusd)
        ),
        st.integers(0, 20), st.integers(0, 9), st.booleans(), st.integers(-50, 50),
    ),
    max_size=7,
)  # fmt: skip


@given(bills=BILLS)
def test_periods_share_no_day_and_have_every_day_and_parts_commute(bills):
    periods = billed_periods(bills)
    days = {day for bill in bills for day in range(bill.first, bill.last + 1)}
    had = [day for period in periods for day in range(period.first, period.last + 1)]
    assert sorted(had) == sorted(days)
    wholes = [bill for bill in bills if not bill.adds]
    parts = [bill for bill in bills if bill.adds]
    assert billed_periods(wholes + parts) == billed_periods(wholes + parts[::-1])
    together = sum(amount.pusd for bill in parts for amount in bill.amounts)
    alone = sum(sum(period.amounts.values()) for period in billed_periods(wholes))
    whole = billed_periods(wholes + parts)
    assert sum(sum(period.amounts.values()) for period in whole) == alone + together
