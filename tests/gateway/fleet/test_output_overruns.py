"""What a target bills beyond its limit is held for the next time, and forgotten in the end."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.fleet.output_overruns import (
    FORGOTTEN_S,
    MARGIN,
    OVERRUN_LIMIT,
    TARGETS_LIMIT,
    OutputOverruns,
    stated_overrun,
)
from ledger.prices.modellimits import ModelLimits
from ledger.prices.rates import PriceTerms, rates_from


def test_nothing_is_added_before_anything_was_seen() -> None:
    overruns = OutputOverruns()
    assert overruns.allowance("api", 0.0) == 0
    overruns.observe("api", 500, 0.0)
    assert overruns.allowance("other", 0.0) == 0
    assert overruns.allowance("api", 1.0) == MARGIN * 500
    assert overruns.allowance("api", FORGOTTEN_S) == 0
    overruns.observe("api", 500, 9 * FORGOTTEN_S)  # a host that is up for weeks
    assert overruns.allowance("api", 10 * FORGOTTEN_S - 1) == MARGIN * 500
    assert overruns.allowance("api", 10 * FORGOTTEN_S) == 0


@given(st.lists(st.integers(0, 10**9), min_size=1))
def test_the_most_counts_within_what_any_model_thinks(tokens: list[int]) -> None:
    overruns = OutputOverruns()
    for at_s, count in enumerate(tokens):
        overruns.observe("api", count, float(at_s))
    assert overruns.allowance("api", len(tokens)) == min(MARGIN * max(tokens), OVERRUN_LIMIT)


def test_the_table_is_bounded_and_keeps_what_was_seen_last() -> None:
    overruns = OutputOverruns()
    for number in range(TARGETS_LIMIT + 10):
        overruns.observe("first", 1, 0.0)
        overruns.observe(f"t{number}", 1, 0.0)
    assert overruns.allowance("first", 0.0) == MARGIN
    assert overruns.allowance(f"t{TARGETS_LIMIT + 9}", 0.0) == MARGIN
    assert overruns.allowance("t0", 0.0) == 0


def test_targets_that_are_told_twice_are_so_many() -> None:
    overruns = OutputOverruns()
    for number in range(TARGETS_LIMIT + 1):
        overruns.tell_twice(f"t{number}")
        overruns.tell_twice("often")
    assert not overruns.is_told_twice("t0")
    assert overruns.is_told_twice("often")
    assert overruns.is_told_twice(f"t{TARGETS_LIMIT}")
    assert overruns.allowance("often", 0.0) == 0


LIMITS = ModelLimits(64_000, 200_000)


@pytest.mark.parametrize(
    ("outside", "stated", "limits", "most"),
    [
        (False, 0, LIMITS, 0),
        (True, 30_000, LIMITS, 30_000),
        (True, 30_000, None, 30_000),
        (True, 0, LIMITS, 50_000),  # what the prompt of 150,000 leaves of the context
        (True, 0, None, OVERRUN_LIMIT),
    ],
)
def test_a_price_states_what_is_billed_beside_the_limit(outside, stated, limits, most) -> None:
    rates = rates_from({"input": 1, "output": 1})
    terms = PriceTerms(rates, reasoning_outside=outside, reasoning_limit=stated)
    assert stated_overrun(terms, limits, 150_000) == most
