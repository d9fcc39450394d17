"""Scores of numbers of engines: exact, additive, and as rent is billed."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.economics.scaling_score import (
    InstanceRent,
    PlanSum,
    ScoredSpan,
    ServedClass,
    add_curves,
    api_curve,
    at,
    least_engines,
    marginal_pusd,
)

HOUR = 3_600_000_000
USD = 10**12
MINUTE = 60_000_000

classes = st.lists(
    st.builds(
        ServedClass,
        st.sampled_from(["a", "b", "c"]),
        st.integers(0, 500),
        st.integers(1, 2_000_000),
        st.none() | st.integers(0, 10**10),
        st.booleans(),
    ),
    max_size=4,
)


@pytest.mark.parametrize(
    ("unit_s", "least_s", "seconds", "paid_s"),
    [(1, 0, 0, 0), (1, 0, 90, 90), (1, 600, 90, 600), (3600, 60, 1, 3600), (3600, 60, 3601, 7200)],
)
def test_a_unit_that_has_begun_is_owed_in_full(unit_s, least_s, seconds, paid_s):
    rent = InstanceRent(3600 * USD, unit_s, least_s)
    assert rent.bill_pusd(10, 10 + seconds * 1_000_000) == paid_s * USD


@given(st.integers(0, 10 * HOUR), st.integers(0, 10 * HOUR), st.sampled_from([1, 60, 3600]))
def test_the_parts_of_a_life_add_up_to_its_bill(first, more, unit_s):
    rent = InstanceRent(2_500_000_000_001, unit_s, 600)
    parts = rent.part_pusd(0, 0, first) + rent.part_pusd(0, first, first + more)
    assert parts == rent.bill_pusd(0, first + more)


@given(classes, st.integers(1, 6))
def test_one_more_engine_never_costs_more_and_enough_cost_nothing(found, most):
    curve = api_curve(found, length_us=MINUTE, capacity_ppm=850_000, most=most)
    assert curve[0] == sum(item.pusd for item in found if item.leaves)
    assert all(more >= fewer for more, fewer in pairwise(curve))
    work = sum(item.work_us for item in found)
    if most * MINUTE * 0.85 >= work:
        assert curve[-1] == 0
    assert sum(marginal_pusd(curve, place) for place in range(1, most + 1)) == curve[0] - curve[-1]


def test_what_may_not_leave_goes_first_and_the_dearest_work_next():
    found = [
        ServedClass("stays", 30, 1_000_000, None, movable=False),
        ServedClass("cheap", 30, 1_000_000, USD),
        ServedClass("dear", 30, 1_000_000, 5 * USD),
    ]
    curve = api_curve(found, length_us=MINUTE, capacity_ppm=1_000_000, most=2)
    assert curve == [180 * USD, 30 * USD, 0]
    assert least_engines(found, length_us=MINUTE, capacity_ppm=1_000_000) == 1


def test_a_class_without_a_price_stays_whether_it_may_leave_or_not():
    found = [ServedClass("unknown", 60, 1_000_000, None), ServedClass("dear", 60, 1_000_000, USD)]
    curve = api_curve(found, length_us=MINUTE, capacity_ppm=1_000_000, most=2)
    assert curve == [60 * USD, 60 * USD, 0]


def test_spans_add_up_and_know_the_best_constant_number():
    first = ScoredSpan(0, MINUTE, 10, PlanSum(3, 4), PlanSum(1, 2), (100, 40, 30), 20, 0, 2)
    both = first + ScoredSpan(
        MINUTE, MINUTE, 5, PlanSum(1, 1), PlanSum(1, 1), (50, 10, 0), 20, 1, 2
    )
    assert both.curve == (150, 50, 30)
    assert (both.ran, both.requests, both.least) == (PlanSum(4, 5), 15, 1)
    assert both.best_fixed == (1, PlanSum(40, 50))
    assert both.all_api == PlanSum(0, 150)
    assert both.as_configured == PlanSum(80, 30)


def test_curves_of_other_lengths_go_on_with_their_last():
    assert add_curves([5, 3], [2, 1, 0]) == [7, 4, 3]
    assert add_curves([], [2, 1]) == [2, 1]
    assert (at([5, 3], 9), at([], 1)) == (3, 0)
