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


def test_a_charge_of_several_days_is_one_amount_without_days_that_were_replaced():
    shares = [BilledAmount(day, "m", 5, (1, 3)) for day in (1, 2, 3)]
    (period,) = billed_periods([PostedBill(1, 3, False, shares), bill(2, 2, False, (2, "m", 9))])
    assert period.amounts == {(1, 3, "m"): 10, (2, 2, "m"): 9}


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
