"""Slices of the value curve: they add up, fall, and follow the order of service."""

from itertools import pairwise
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.scaling.engine_worth import DemandMix
from router.scaling.rate_points import RatePoints

errors = st.lists(st.floats(-3, 3), min_size=1, max_size=6)
rows = st.lists(st.tuples(st.floats(0.01, 1), st.floats(0, 100)), min_size=1, max_size=5)


def scaled(pairs):
    whole = sum(share for share, _ in pairs)
    return [(share / whole, density) for share, density in pairs]


@given(rows, st.floats(0, 20), st.lists(st.tuples(st.floats(0, 4), st.floats(0, 100)), max_size=2))
def test_engines_add_up_to_the_value_and_earn_less_and_less(pairs, rate, fixed) -> None:
    mix = DemandMix.ordered([], scaled(pairs), fixed)
    earned = [mix.earns(engine, rate) for engine in range(1, 40)]
    assert sum(earned) == pytest.approx(mix.value(39, rate), abs=1e-6)
    everything = sum(share * density * rate for share, density in scaled(pairs))
    everything += sum(work * density for work, density in fixed)
    assert mix.value(39, rate) == pytest.approx(everything, abs=1e-6)
    assert all(after <= before + 1e-6 for before, after in pairwise(earned))
    assert all(item >= -1e-9 for item in earned)


@given(
    rows, rows, errors, st.integers(1, 6), st.floats(-2, 3), st.sampled_from([0.0, 0.1]),
    st.lists(st.tuples(st.floats(0, 4), st.floats(0, 100)), max_size=1),
)  # fmt: skip
def test_the_mean_over_errors_is_that_of_each_error(
    kept, movable, errors, engine, level, base, fixed
) -> None:
    pairs = scaled([*kept, *movable])
    mix = DemandMix.ordered(pairs[: len(kept)], pairs[len(kept) :], fixed)
    share = 1 / len(errors)
    points = RatePoints(tuple((error, share) for error in errors))
    expected = sum(
        share * mix.earns(engine, max(0.0, exp(level + error) - base)) for error in errors
    )
    assert mix.mean_earned(engine, points, level, base) == pytest.approx(expected, abs=1e-6)


def test_the_dearest_are_served_first_after_what_may_not_leave() -> None:
    mix = DemandMix.ordered([(0.25, 0.0)], [(0.25, 4.0), (0.5, 9.0)])
    assert [mix.earns(engine, 4.0) for engine in (1, 2, 3, 4, 5)] == [0.0, 9.0, 9.0, 4.0, 0.0]
    assert mix.dearest == 9.0


def test_one_class_is_its_price_times_what_it_fills() -> None:
    mix = DemandMix.ordered([], [(1.0, 6.0)])
    earned = [mix.earns(engine, 2.5) for engine in (1, 2, 3, 4)]
    assert earned == pytest.approx([6.0, 6.0, 3.0, 0.0])


def test_batches_stand_between_the_classes_by_their_price() -> None:
    mix = DemandMix.ordered([], [(1.0, 6.0)], [(1.0, 3.0)])
    assert [mix.earns(engine, 1.5) for engine in (1, 2, 3)] == [6.0, 4.5, 1.5]
    assert mix.earns(1, 0.0) == 3.0  # it is there without any traffic


def test_no_traffic_is_worth_nothing() -> None:
    assert DemandMix.ordered([], []).value(3, 5.0) == 0.0
    assert DemandMix.ordered([], [(1.0, 5.0)]).value(3, 0.0) == 0.0
