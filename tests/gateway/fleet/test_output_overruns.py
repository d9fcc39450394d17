"""What a target bills beyond its limit is held for the next time, and forgotten in the end."""

from hypothesis import given
from hypothesis import strategies as st

from gateway.fleet.output_overruns import (
    FORGOTTEN_S,
    MARGIN,
    OVERRUN_LIMIT,
    TARGETS_LIMIT,
    OutputOverruns,
)


def test_nothing_is_added_before_anything_was_seen() -> None:
    overruns = OutputOverruns()
    assert overruns.allowance("api", 0.0) == 0
    overruns.observe("api", 500, 0.0)
    assert overruns.allowance("other", 0.0) == 0
    assert overruns.allowance("api", 1.0) == MARGIN * 500
    assert overruns.allowance("api", FORGOTTEN_S) == 0


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
