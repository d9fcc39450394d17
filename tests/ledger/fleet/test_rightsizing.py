"""As many GPUs of another kind as leave no more overflow than today, and what they cost."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.economics.step_cost import load_curve
from ledger.fleet.market import GpuOffer
from ledger.fleet.rightsizing import MOST_ENGINES, GpuOption, min_engines, sizes


def gpu(name: str, memory: int, bandwidth: int, rate: int | None) -> GpuOffer:
    return GpuOffer(name, "NVIDIA", memory, bandwidth, rate, rate, "a list", None, (), "a sheet")


NOW = gpu("now", 48, 1_000, 2_000)
LOAD = load_curve([0, 50, 100, 100, 250])


def test_a_load_is_carried_as_well_as_today() -> None:
    """Two engines of 100 a minute let 50 overflow; so may the others."""
    half = gpu("half", 48, 500, 600)  # half as fast: four
    small = gpu("small", 24, 500, 500)  # two make an engine of today's memory and speed
    fast = gpu("fast", 96, 4_000, 3_000)  # one does it
    dear = gpu("unknown", 48, 1_000, None)
    found = sizes(GpuOption(NOW, 1, 2, 100), LOAD, [NOW, half, small, fast, dear])
    assert [
        (finding.gpu.name, finding.engines, finding.gpus, finding.pusd_per_month)
        for finding in found
    ] == [
        ("small", 2, 4, 4 * 500 * 720),
        ("half", 4, 4, 4 * 600 * 720),
        ("fast", 1, 1, 3_000 * 720),
        ("unknown", 2, 2, None),
    ]
    assert [finding.scaled for finding in found] == [1, Fraction(1, 2), 4, 1]


def test_what_could_never_carry_it_is_left_out() -> None:
    load, today = load_curve([2_000]), GpuOption(gpu("now", 48, 10_000, 1), 1, 2, 1_000)
    slow, slower = gpu("slow", 48, 5, 1), gpu("slower", 48, 4, 1)
    (item,) = sizes(today, load, [slow, slower])
    assert (item.gpu.name, item.engines) == ("slow", 4_000)
    assert MOST_ENGINES < 2 * 10_000 / 4


@given(
    st.lists(st.integers(0, 10**6), min_size=1, max_size=30).filter(any),
    st.fractions(Fraction(1, 100), 10**6),
    st.fractions(0, 1),
)
def test_the_fewest_are_found(minutes: list[int], per_engine: Fraction, share: Fraction) -> None:
    load = load_curve(minutes)
    allowed = share * load.total
    found = min_engines(load, per_engine, allowed)
    if found is None:
        assert load.overflow(MOST_ENGINES * per_engine, volume=load.total) > allowed
        return
    assert load.overflow(found * per_engine, volume=load.total) <= allowed
    if found > 1:
        assert load.overflow((found - 1) * per_engine, volume=load.total) > allowed


@pytest.mark.parametrize("engines", [1, 3])
def test_the_same_kind_under_another_name_takes_as_many(engines: int) -> None:
    twin = gpu("twin", 48, 1_000, 1_000)
    load = load_curve([50 * engines, 100 * engines])
    (item,) = sizes(GpuOption(NOW, 1, engines, 100), load, [twin])
    assert item.engines == engines
