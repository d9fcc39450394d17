"""The longest answer that money affords: exact, within the limit, never dearer than the money."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.fleet.output_cap import LEAST_TOKENS, OutputCap, OutputCapRule


def linear(base: int, each: int) -> Callable[[int], int]:
    return lambda tokens: base + each * tokens


@pytest.mark.parametrize(
    ("money", "cap"),
    [
        (None, OutputCap(None, 10_100)),
        (10**9, OutputCap(1000, 10_100)),
        (10_100, OutputCap(1000, 10_100)),
        (10_099, OutputCap(999, 10_090)),
        (5_004, OutputCap(490, 5_000)),
        (100 + 10 * LEAST_TOKENS, OutputCap(LEAST_TOKENS, 100 + 10 * LEAST_TOKENS)),
        (99 + 10 * LEAST_TOKENS, OutputCap(LEAST_TOKENS, 100 + 10 * LEAST_TOKENS)),  # is refused
        (0, OutputCap(LEAST_TOKENS, 100 + 10 * LEAST_TOKENS)),
    ],
)
def test_an_api_is_always_told_where_money_is_limited(money: int | None, cap: OutputCap) -> None:
    assert OutputCapRule(linear(100, 10), limit_tokens=1000).cap(money) == cap


def test_an_own_engine_is_told_nothing_while_the_money_lasts_to_its_context() -> None:
    own = OutputCapRule(linear(0, 1), limit_tokens=800, unasked_tokens=1000)
    assert own.cap(1000) == OutputCap(None, 1000)
    assert own.cap(999) == OutputCap(800, 800)  # where prompt and answer fit for certain
    assert own.cap(700) == OutputCap(700, 700)


def test_a_limit_below_the_least_is_enough() -> None:
    assert OutputCapRule(linear(0, 1), limit_tokens=5).cap(5) == OutputCap(5, 5)
    assert OutputCapRule(linear(0, 1), limit_tokens=5).cap(4).pusd > 4


@given(
    base=st.integers(0, 10**6),
    each=st.integers(0, 10**6),
    square=st.integers(0, 100),
    limit=st.integers(1, 200_000),
    money=st.integers(0, 10**13),
)
def test_the_cap_is_the_longest_that_fits(base, each, square, limit, money) -> None:
    def bound(tokens: int) -> int:
        return base + each * tokens + square * tokens * tokens

    cap = OutputCapRule(bound, limit).cap(money)
    assert cap.pusd == bound(cap.tokens)
    assert min(LEAST_TOKENS, limit) <= cap.tokens <= limit
    if cap.pusd <= money:
        assert cap.tokens == limit or bound(cap.tokens + 1) > money
    else:
        assert cap.tokens == min(LEAST_TOKENS, limit)
