"""Whole GPUs, overflow by the minute, and the volumes where each number of GPUs is best."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.economics.cost import BasisMismatchError, TokenBasis, UnitPrice, Volume
from ledger.economics.step_cost import (
    StepCost,
    explaining_capacity,
    fitted_window,
    load_curve,
    sum_windows,
)

BOTH = TokenBasis.INPUT_OUTPUT


def staircase(minutes: list[int], **changes: object) -> StepCost:
    values = {
        "gpu_pusd": 1_000,
        "other_pusd": 0,
        "spares": 0,
        "capacity_per_minute": 100,
        "api": UnitPrice(10, BOTH),
        "load": load_curve(minutes),
    }
    return StepCost(**(values | changes))


def volume(tokens: int) -> Volume:
    return Volume(tokens, BOTH)


def test_overflow_is_summed_by_the_minute() -> None:
    """Two curves with one total: the peaky one overflows, the flat one fits."""
    flat, peaky = load_curve([50, 50, 50, 50]), load_curve([0, 0, 0, 200])
    assert flat.overflow(100, volume=200) == 0
    assert peaky.overflow(100, volume=200) == 100
    assert peaky.overflow(100, volume=100) == 0
    assert flat.overflow(100, volume=800) == 400
    assert flat.overflow(100, volume=0) == 0


def test_costs_at_each_number_of_gpus() -> None:
    steps = staircase([0, 0, 0, 200], other_pusd=300, spares=1)
    assert [steps.fixed_pusd(n) for n in range(3)] == [0, 2_300, 3_300]
    assert steps.total_pusd(0, volume(200)) == 2_000
    assert steps.total_pusd(1, volume(200)) == 2_300 + 1_000
    assert steps.total_pusd(2, volume(200)) == 3_300


def test_a_curve_needs_tokens_and_one_basis() -> None:
    for minutes in ([], [0, 0], [-1, 5]):
        with pytest.raises(ValueError, match="load curve"):
            load_curve(minutes)
    with pytest.raises(BasisMismatchError):
        staircase([1]).total_pusd(1, Volume(1, TokenBasis.OUTPUT))


def oracle(minutes: list[int], gpu: int, other: int, spares: int, n: int, tokens: int) -> Fraction:
    fixed = (n + spares) * gpu + other if n else 0
    scaled = [Fraction(tokens * minute, sum(minutes)) for minute in minutes]
    return fixed + 10 * sum(max(Fraction(0), minute - 100 * n) for minute in scaled)


@pytest.mark.parametrize(
    ("overflowed", "window"),
    [
        (150, 1),  # strict minutes: 100 + 50 above 100
        (50, 2),  # pairs: [200, 150, 0, 250] against 200
        (0, 3),  # threes: [300, 50, 250] against 300
    ],
)
def test_the_window_is_the_one_that_explains_what_overflowed(overflowed: int, window: int) -> None:
    minutes = [200, 0, 100, 50, 0, 0, 100, 150, *[0] * 22]
    assert fitted_window(minutes, capacity_per_minute=100, overflowed=overflowed) == window


def test_windows_keep_the_total() -> None:
    assert sum_windows([1, 2, 3, 4, 5], 2) == [3, 7, 5]


def test_the_capacity_that_explains_what_overflowed() -> None:
    loads = [0, 50, 200, 100]
    found = {spilled: explaining_capacity(loads, spilled) for spilled in (0, 40, 100, 101, 350)}
    assert found == {0: 200, 40: 160, 100: 100, 101: Fraction(199, 2), 350: 0}
    with pytest.raises(ValueError, match="not exceed the load"):
        explaining_capacity(loads, 351)


@settings(max_examples=80)
@given(
    minutes=st.lists(st.integers(0, 50), min_size=1, max_size=12).filter(any),
    share=st.fractions(0, 1),
)
def test_the_overflow_at_that_capacity_is_what_overflowed(
    minutes: list[int], share: Fraction
) -> None:
    curve = load_curve(minutes)
    spilled = int(curve.total * share)
    assert curve.overflow(explaining_capacity(minutes, spilled), volume=curve.total) == spilled
