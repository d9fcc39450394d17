"""At each threshold, and nowhere before it, the period breaks even."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.economics.sensitivity import BreakEvenCase, outcome
from ledger.economics.thresholds import ThresholdInput, thresholds

USD = 10**12
CASE = BreakEvenCase(
    gpus=2, gpu_pusd_per_hour=3 * USD, hours=720, tokens_per_s=2_000, duty=Fraction(9, 10),
    ops_hours_per_week=5, ops_pusd_per_hour=95 * USD, input_price=2 * 10**6, cached_price=10**6,
    output_price=8 * 10**6, input_share=Fraction(2, 3), cached_share=Fraction(1, 4),
    served_tokens=10**9,
)  # fmt: skip
FIELDS = {
    ThresholdInput.GPU_RATE: "gpu_pusd_per_hour", ThresholdInput.VOLUME: "served_tokens",
    ThresholdInput.INPUT_SHARE: "input_share", ThresholdInput.CACHED_SHARE: "cached_share",
    ThresholdInput.OPS_HOURS: "ops_hours_per_week",
}  # fmt: skip
CASES = st.builds(
    replace,
    st.just(CASE),
    gpus=st.integers(1, 8),
    spares=st.integers(0, 2),
    gpu_pusd_per_hour=st.integers(USD // 10, 9 * USD),
    served_tokens=st.integers(10**7, 9 * 10**9),
    output_price=st.integers(2 * 10**6, 30 * 10**6),
    ops_hours_per_week=st.integers(0, 40),
)


def at(case: BreakEvenCase, name: ThresholdInput, value: Fraction) -> BreakEvenCase:
    if name is ThresholdInput.API_PRICE:
        prices = ("input_price", "cached_price", "output_price")
        return replace(case, **{price: getattr(case, price) * value for price in prices})
    return replace(case, **{FIELDS[name]: value})


@given(CASES)
def test_at_a_threshold_the_result_is_zero(case) -> None:
    for threshold in thresholds(case):
        if threshold.needed is not None:
            assert outcome(at(case, threshold.name, threshold.needed)).result_pusd == 0, (
                threshold.name
            )


@given(CASES)
def test_it_pays_exactly_on_the_side_that_is_named(case) -> None:
    pays = outcome(case).result_pusd >= 0
    for threshold in thresholds(case):
        if threshold.needed is not None:
            there = (
                threshold.now <= threshold.needed
                if threshold.at_most
                else threshold.now >= threshold.needed
            )
            assert there == pays, threshold.name


def test_by_hand() -> None:
    found = {threshold.name: threshold for threshold in thresholds(CASE)}
    fixed = 2 * 3 * 720 + 5 * 95 * Fraction(720, 168)
    price = Fraction(2, 3) * Fraction(3, 4) * 2 + Fraction(2, 3) / 4 + Fraction(1, 3) * 8
    assert found[ThresholdInput.VOLUME].needed == fixed / price * 10**6
    assert found[ThresholdInput.API_PRICE].needed == fixed / (1000 * price)
    assert found[ThresholdInput.GPU_RATE].now == 3 * USD
    assert found[ThresholdInput.OPS_HOURS].needed is None, "without any ops it does not pay either"


@pytest.mark.parametrize("served", [0, 1])
def test_what_no_value_cures_has_none(served: int) -> None:
    found = {
        threshold.name: threshold.needed
        for threshold in thresholds(replace(CASE, served_tokens=served))
    }
    assert found[ThresholdInput.GPU_RATE] is None
    assert (found[ThresholdInput.API_PRICE] is None) is (served == 0)
