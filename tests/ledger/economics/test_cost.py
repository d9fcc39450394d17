"""Costs per period and per token; the token basis travels with every figure."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.economics import cost as economics
from ledger.economics.cost import BasisMismatchError, TokenBasis, UnitPrice, Volume
from ledger.money import usd_to_pusd

BOTH, OUTPUT = TokenBasis.INPUT_OUTPUT, TokenBasis.OUTPUT
USD = 10**12


def test_a_month_of_a_gpu_with_ops_is_their_sum() -> None:
    gpu = economics.gpu_cost(gpus=4, pusd_per_hour=7 * USD // 2, hours=720)
    ops = economics.ops_cost(
        hours_per_week=5, pusd_per_hour=95 * USD, weeks=economics.weeks_of(720)
    )
    cost = economics.FixedCost(gpu, ops, overhead_pusd=usd_to_pusd(100))
    assert gpu == 10_080 * USD
    assert ops == Fraction(720 * 5 * 95, 168) * USD
    assert cost.total_pusd == gpu + ops + 100 * USD


def test_an_idle_gpu_makes_every_token_dearer() -> None:
    """A calculator that multiplies the bill by utilisation makes idle GPUs look cheap."""
    served = Volume(1_000_000_000, BOTH)
    fixed = economics.gpu_cost(gpus=1, pusd_per_hour=usd_to_pusd(4), hours=720)
    allocation = economics.allocation_unit_cost(fixed_pusd=fixed, served=served)
    assert allocation.usd_per_million == Fraction(288, 100)


def test_nothing_served_has_no_unit_cost() -> None:
    nothing = Volume(0, BOTH)
    assert economics.allocation_unit_cost(fixed_pusd=USD, served=nothing) is None
    assert economics.average_price([], basis=BOTH) is None


def test_average_price_weighs_by_tokens() -> None:
    average = economics.average_price([(100, 10), (300, 30), (0, 60)], basis=BOTH)
    assert average == UnitPrice(4, BOTH)


def test_bases_never_mix() -> None:
    with pytest.raises(BasisMismatchError, match="input \\+ output token cannot meet one per outp"):
        economics.same_basis(Volume(1, BOTH), UnitPrice(1, OUTPUT))
    with pytest.raises(BasisMismatchError):
        economics.same_basis(Volume(1, OUTPUT), Volume(2, BOTH))
    with pytest.raises(BasisMismatchError):
        economics.on_all_tokens(Volume(1, BOTH), input_per_output=2)


def test_output_capacity_restated_on_all_tokens_is_threefold_at_512_in_256_out() -> None:
    output = economics.capacity(tokens_per_s=215, hours=720, duty=1, basis=OUTPUT)
    assert output == Volume(557_280_000, OUTPUT)
    assert economics.on_all_tokens(output, input_per_output=2) == Volume(1_671_840_000, BOTH)


@pytest.mark.parametrize(
    "call",
    [
        lambda: economics.peak_unit_cost(pusd_per_hour=1, tokens_per_s=0, basis=BOTH),
        lambda: economics.tokens_per_usd(pusd_per_hour=0, tokens_per_s=1),
        lambda: economics.capacity(tokens_per_s=1, hours=1, duty=2, basis=BOTH),
    ],
)
def test_impossible_inputs_are_refused(call) -> None:
    with pytest.raises(ValueError):
        call()


@given(rate=st.integers(1, 10**14), speed=st.integers(1, 10**6))
def test_cost_per_token_and_tokens_per_usd_are_inverse(rate: int, speed: int) -> None:
    cost = economics.peak_unit_cost(pusd_per_hour=rate, tokens_per_s=speed, basis=OUTPUT)
    tokens = economics.tokens_per_usd(pusd_per_hour=rate, tokens_per_s=speed)
    assert cost.pusd_per_token * tokens == USD
