"""Whole GPUs, overflow by the minute, and the volumes where each number of GPUs is best."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.economics.cost import BasisMismatchError, TokenBasis, UnitPrice, Volume
from ledger.economics.step_cost import (
    GpuCountBand,
    StepCost,
    bands,
    best,
    break_even,
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


def test_bands_meet_where_two_totals_cross() -> None:
    steps = staircase([1] * 10)  # flat: N GPUs carry 1,000 tokens each per period
    assert bands(steps, most_gpus=3) == (
        GpuCountBand(0, 0, 101),
        GpuCountBand(1, 101, 1_101),
        GpuCountBand(2, 1_101, 2_101),
        GpuCountBand(3, 2_101, None),
    )
    advice = best(steps, volume(1_100), most_gpus=3)
    assert (advice.gpus, advice.total_pusd) == (1, 2_000)
    assert advice.band == GpuCountBand(1, 101, 1_101)


def test_dear_gpus_are_never_best() -> None:
    steps = staircase([1] * 10, gpu_pusd=20_000)  # a full GPU avoids 10,000
    assert bands(steps, most_gpus=4) == (GpuCountBand(0, 0, None),)


def test_shared_ops_skip_the_first_step() -> None:
    """With dear ops one GPU never pays for itself, several do: its band does not exist."""
    steps = staircase([1] * 10, gpu_pusd=5_000, other_pusd=6_000)
    assert [band.gpus for band in bands(steps, most_gpus=3)] == [0, 2, 3]


def test_a_curve_needs_tokens_and_one_basis() -> None:
    for minutes in ([], [0, 0], [-1, 5]):
        with pytest.raises(ValueError, match="load curve"):
            load_curve(minutes)
    with pytest.raises(BasisMismatchError):
        staircase([1]).total_pusd(1, Volume(1, TokenBasis.OUTPUT))


@settings(max_examples=60)
@given(
    minutes=st.lists(st.integers(0, 50), min_size=1, max_size=12).filter(any),
    gpu=st.integers(1, 3_000),
    other=st.integers(0, 3_000),
    spares=st.integers(0, 2),
    tokens=st.integers(0, 20_000),
)
def test_bands_agree_with_trying_every_number(
    minutes: list[int], gpu: int, other: int, spares: int, tokens: int
) -> None:
    steps = staircase(minutes, gpu_pusd=gpu, other_pusd=other, spares=spares)
    totals = [oracle(minutes, gpu, other, spares, n, tokens) for n in range(5)]
    advice = best(steps, volume(tokens), most_gpus=4)
    assert advice.total_pusd == min(totals)
    found = [
        b for b in bands(steps, most_gpus=4) if b.start <= tokens and tokens < (b.end or 10**9)
    ]
    assert [b.gpus for b in found] == [totals.index(min(totals))]


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
    with pytest.raises(ValueError, match="part of the load"):
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


def test_break_even_counts_what_is_bought_on_the_way() -> None:
    """Flat load, one GPU: 1,000 tokens carry 1,000; the API asks 10 a token."""
    steps, api = staircase([1] * 10, other_pusd=500), UnitPrice(10, BOTH)
    assert break_even(steps, 1, api) == 150
    assert break_even(steps, 0, api) == 0, "nothing owned costs nothing"
    peaky = staircase([1] * 9 + [91], other_pusd=500)  # 150 tokens: 136.5 in one minute
    assert break_even(peaky, 1, api) == 50 / Fraction(9, 100)
    assert break_even(steps, 1, UnitPrice(Fraction(3, 2), BOTH)) == 1_000
    assert break_even(steps, 1, UnitPrice(1, BOTH)) is None, "a full GPU avoids 1,000 of 1,500"
    assert break_even(steps, 1, UnitPrice(0, BOTH)) is None


@settings(max_examples=80)
@given(
    minutes=st.lists(st.integers(0, 50), min_size=1, max_size=12).filter(any),
    gpu=st.integers(1, 3_000),
    price=st.integers(1, 25),
    gpus=st.integers(1, 3),
)
def test_before_break_even_own_costs_more_and_there_it_costs_the_same(
    minutes: list[int], gpu: int, price: int, gpus: int
) -> None:
    steps = staircase(minutes, gpu_pusd=gpu)
    found = break_even(steps, gpus, UnitPrice(price, BOTH))
    tried = [Fraction(10**6 * n, 7) ** 2 / 10**6 for n in range(1, 60)] if found is None else []
    tried += [found * share / 10 for share in range(10)] if found is not None else []
    assert all(steps.total_pusd(gpus, volume(tokens)) > tokens * price for tokens in tried)
    if found is not None:
        assert steps.total_pusd(gpus, volume(found)) == found * price
