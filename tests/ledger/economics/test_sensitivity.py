"""Which input moves the answer: every bar is the whole answer recomputed with one input swung."""

from dataclasses import replace
from fractions import Fraction

from ledger.economics.sensitivity import INPUTS, BreakEvenCase, outcome, tornado

USD = 10**12
CASE = BreakEvenCase(
    gpus=2,
    gpu_pusd_per_hour=4 * USD,
    hours=720,
    tokens_per_s=2_000,
    duty=Fraction(9, 10),
    ops_hours_per_week=7,
    ops_pusd_per_hour=100 * USD,
    input_price=2 * 10**6,
    cached_price=10**6,
    output_price=8 * 10**6,
    input_share=Fraction(3, 4),
    cached_share=Fraction(2, 3),
    served_tokens=3 * 10**9,
)


def test_outcome_of_the_case() -> None:
    """a = 1/4 x $2 + 1/2 x $1 + 1/4 x $8 = $3; F = $5,760 + $3,000."""
    answer = outcome(CASE)
    assert answer.volume_tokens == 2_920 * 10**6
    assert answer.feasible
    assert answer.result_pusd == (9_000 - 8_760) * USD


def test_tokens_beyond_the_capacity_earn_nothing() -> None:
    full = outcome(replace(CASE, served_tokens=10**15))
    capacity = 2 * 2_000 * 3_600 * 720 * Fraction(9, 10)
    assert full.result_pusd == capacity * 3 * 10**6 - 8_760 * USD


def test_the_tornado_is_sorted_and_recomputes_each_end() -> None:
    bars = tornado(CASE, share=Fraction(1, 5))
    assert {bar.name for bar in bars} == set(INPUTS)
    reaches = [bar.reach_pusd for bar in bars]
    assert reaches == sorted(reaches, reverse=True)
    by_name = {bar.name: bar for bar in bars}
    rate = by_name["GPU rate"]
    assert rate.low == outcome(replace(CASE, gpu_pusd_per_hour=Fraction(16, 5) * USD))
    assert rate.low.result_pusd > rate.high.result_pusd
    assert by_name["API price"].low.result_pusd < by_name["API price"].high.result_pusd
    assert by_name["ops hours"].reach_pusd == Fraction(2, 5) * 3_000 * USD
    assert by_name["cache hits"].low.result_pusd > by_name["cache hits"].high.result_pusd


def test_shares_stay_shares() -> None:
    bars = {bar.name: bar for bar in tornado(CASE, share=Fraction(1, 2))}
    assert bars["duty"].high == outcome(replace(CASE, duty=1))
    assert bars["input share"].high == outcome(replace(CASE, input_share=Fraction(1)))


def test_an_api_that_is_free_never_breaks_even() -> None:
    free = replace(CASE, input_price=0, cached_price=0, output_price=0)
    assert outcome(free).volume_tokens is None
    assert not outcome(free).feasible
