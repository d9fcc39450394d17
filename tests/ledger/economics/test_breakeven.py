"""Break-even volume, whether it is within reach, what could cure it, and where a period stands."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.economics.breakeven import (
    BreakEvenFix,
    CostDriver,
    FleetConfiguration,
    assess,
    break_even_volume,
    gpus_to_break_even,
    position,
)
from ledger.economics.cost import BasisMismatchError, TokenBasis, UnitPrice, Volume

BOTH = TokenBasis.INPUT_OUTPUT
USD = 10**12
DOLLAR_PER_MILLION = UnitPrice(10**6, BOTH)
MILLION = 10**6
# One H200 at $3.50 for 720 h, $2,058 of ops, 3,500M tokens of capacity each.
ONE = FleetConfiguration(1, 7 * USD // 2, 720, Volume(3_500 * MILLION, BOTH), ops_pusd=2_058 * USD)


def levers(cures: tuple[BreakEvenFix, ...]) -> dict[CostDriver, object]:
    return {cure.lever: cure.needed for cure in cures}


def test_more_gpus_cure_a_configuration_whose_ops_are_fixed() -> None:
    this_assess = assess(ONE, DOLLAR_PER_MILLION)
    assert (this_assess.volume, this_assess.feasible) == (Volume(4_578 * MILLION, BOTH), False)
    four = assess(replace(ONE, gpus=4), DOLLAR_PER_MILLION)
    assert (four.volume, four.feasible) == (Volume(12_138 * MILLION, BOTH), True)
    assert four.capacity == Volume(14_000 * MILLION, BOTH)
    assert four.cures == ()
    assert gpus_to_break_even(ONE, DOLLAR_PER_MILLION) == 3


def test_every_cure_alone_brings_the_volume_within_reach() -> None:
    needed = levers(assess(ONE, DOLLAR_PER_MILLION).cures)
    cured = {
        CostDriver.GPU_RATE: (replace(ONE, gpu_pusd_per_hour=needed[CostDriver.GPU_RATE]), None),
        CostDriver.OPS: (replace(ONE, ops_pusd=needed[CostDriver.OPS]), None),
        CostDriver.API_PRICE: (ONE, UnitPrice(needed[CostDriver.API_PRICE], BOTH)),
        CostDriver.CAPACITY: (
            replace(ONE, capacity_each=Volume(needed[CostDriver.CAPACITY], BOTH)),
            None,
        ),
    }
    for configuration, price in cured.values():
        answer = assess(configuration, price or DOLLAR_PER_MILLION)
        assert answer.volume.tokens == answer.capacity.tokens
    assert assess(replace(ONE, gpus=needed[CostDriver.GPUS]), DOLLAR_PER_MILLION).feasible
    assert not assess(replace(ONE, gpus=needed[CostDriver.GPUS] - 1), DOLLAR_PER_MILLION).feasible


def test_the_rate_of_today_is_that_of_the_volume_which_is_served() -> None:
    """At the break-even volume it is the rate in force; ops are paid first."""
    whole = assess(ONE, UnitPrice(10**5, BOTH))
    cheap = UnitPrice(10**5, BOTH)
    at = assess(ONE, cheap, served=Volume(whole.volume.tokens, BOTH)).served_pusd_per_hour
    assert at == ONE.gpu_pusd_per_hour
    assert assess(ONE, cheap, served=Volume(0, BOTH)).served_pusd_per_hour is None
    assert assess(ONE, cheap).served_pusd_per_hour is None
    with pytest.raises(BasisMismatchError):
        assess(ONE, cheap, served=Volume(1, TokenBasis.OUTPUT))


def test_what_cannot_cure_says_so() -> None:
    cheap = UnitPrice(10**5, BOTH)  # $0.10 per million: 3,500M tokens earn $350 against $4,578
    needed = levers(assess(ONE, cheap).cures)
    assert needed[CostDriver.GPU_RATE] is None
    assert needed[CostDriver.OPS] is None
    assert needed[CostDriver.GPUS] is None
    assert needed[CostDriver.API_PRICE] == Fraction(4_578 * USD, 3_500 * MILLION)


def test_an_api_cheaper_than_our_power_never_breaks_even() -> None:
    power = UnitPrice(2 * 10**6, BOTH)
    answer = assess(ONE, DOLLAR_PER_MILLION, power)
    assert (answer.volume, answer.feasible) == (None, False)
    needed = levers(answer.cures)
    assert needed[CostDriver.CAPACITY] is None
    assert needed[CostDriver.API_PRICE] == 2 * 10**6 + Fraction(4_578 * USD, 3_500 * MILLION)
    stands = position(
        volume=Volume(MILLION, BOTH), fixed_pusd=USD, avoided=DOLLAR_PER_MILLION, variable=power
    )
    assert stands.ratio is None
    assert stands.result_pusd == -2 * USD


def test_no_gpus_have_no_capacity_and_cost_only_what_is_fixed() -> None:
    none = assess(replace(ONE, gpus=0), DOLLAR_PER_MILLION)
    needed = levers(none.cures)
    assert none.volume.tokens == 2_058 * MILLION
    assert (
        needed[CostDriver.GPU_RATE],
        needed[CostDriver.API_PRICE],
        needed[CostDriver.CAPACITY],
    ) == (None,) * 3


def test_a_spare_is_paid_for_and_adds_no_capacity() -> None:
    spared = replace(ONE, gpus=4, spares=1)
    answer = assess(spared, DOLLAR_PER_MILLION)
    assert answer.volume == Volume(14_658 * MILLION, BOTH)
    assert not answer.feasible
    assert gpus_to_break_even(spared, DOLLAR_PER_MILLION) == 5
    assert assess(replace(spared, gpus=5), DOLLAR_PER_MILLION).feasible


def test_variable_cost_raises_the_volume() -> None:
    power = UnitPrice(2 * 10**5, BOTH)
    volume = break_even_volume(fixed_pusd=8 * USD, avoided=DOLLAR_PER_MILLION, variable=power)
    assert volume == Volume(10 * MILLION, BOTH)


@pytest.mark.parametrize(
    ("tokens", "ratio", "result_usd"),
    [(0, 0, -10), (5, Fraction(1, 2), -5), (10, 1, 0), (30, 3, 20)],
)
def test_position(tokens: int, ratio: Fraction, result_usd: int) -> None:
    stands = position(
        volume=Volume(tokens * MILLION, BOTH), fixed_pusd=10 * USD, avoided=DOLLAR_PER_MILLION
    )
    assert (stands.ratio, stands.result_pusd) == (ratio, result_usd * USD)


def test_free_gpus_have_no_ratio() -> None:
    stands = position(volume=Volume(1, BOTH), fixed_pusd=0, avoided=DOLLAR_PER_MILLION)
    assert stands.ratio is None
    assert stands.result_pusd == 10**6


def test_bases_never_mix() -> None:
    output = UnitPrice(1, TokenBasis.OUTPUT)
    with pytest.raises(BasisMismatchError):
        assess(ONE, output)
    with pytest.raises(BasisMismatchError):
        position(volume=Volume(1, BOTH), fixed_pusd=1, avoided=output)
    with pytest.raises(BasisMismatchError):
        break_even_volume(fixed_pusd=1, avoided=DOLLAR_PER_MILLION, variable=output)


@given(
    fixed=st.integers(1, 10**18),
    price=st.integers(1, 10**9),
    tokens=st.integers(0, 10**15),
)
def test_money_is_made_exactly_from_the_break_even_volume_on(
    fixed: int, price: int, tokens: int
) -> None:
    avoided = UnitPrice(price, BOTH)
    even = break_even_volume(fixed_pusd=fixed, avoided=avoided)
    stands = position(volume=Volume(tokens, BOTH), fixed_pusd=fixed, avoided=avoided)
    assert (stands.result_pusd >= 0) == (tokens >= even.tokens) == (stands.ratio >= 1)
