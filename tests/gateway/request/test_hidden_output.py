"""What is learned of output that targets do not show: bounded, and of the target alone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.request.hidden_output import RATE_LIMIT_PER_S, TARGETS_LIMIT, HiddenOutput
from ledger.journals.records import TokenCounts

counts = st.integers(0, 10**9)
seconds = st.floats(0, 10**6)


def observed(output: int, reasoning: int = 0, *, said=0, first_s=1.0, duration_s=10.0, known=None):
    hidden = known or HiddenOutput()
    tokens = TokenCounts(input=1, output=output, reasoning=reasoning)
    hidden.observe("p/m", tokens, said_bytes=said, first_s=first_s, duration_s=duration_s)
    return hidden


@pytest.mark.parametrize(
    ("hidden", "hides", "rate"),
    [
        (observed(100, said=500), False, 10.0),
        (observed(1100, 1000, said=500, first_s=2.0), True, (1100 - 250) / 2.0),
        (observed(1100, 1000, said=5500), False, 110.0),  # its reasoning was shown
        (observed(1100, 1000, first_s=None, duration_s=11.0), False, 100.0),  # in one piece
        (observed(10**9, 10**9, first_s=0.0), True, RATE_LIMIT_PER_S),
    ],
)
def test_the_rate_is_of_what_was_hidden_or_of_all(hidden, hides, rate) -> None:
    assert hidden.hides("p/m") is hides
    assert hidden.tokens_per_s("p/m") == pytest.approx(rate)
    assert (hidden.hides("p/x"), hidden.tokens_per_s("p/x")) == (False, None)


def test_a_fast_answer_is_remembered_and_fades() -> None:
    hidden = observed(1000)
    observed(10, known=hidden)
    assert hidden.tokens_per_s("p/m") == pytest.approx(99.0)
    for _ in range(1000):
        observed(10, known=hidden)
    assert hidden.tokens_per_s("p/m") == pytest.approx(1.0)


@given(counts, counts, counts, st.none() | seconds, seconds)
def test_whatever_is_reported_the_rate_is_bounded(output, reasoning, said, first_s, duration_s):
    hidden = observed(output, reasoning, said=said, first_s=first_s, duration_s=duration_s)
    assert 0.0 <= hidden.tokens_per_s("p/m") <= RATE_LIMIT_PER_S


def test_the_oldest_of_too_many_targets_is_forgotten() -> None:
    hidden, tokens = HiddenOutput(), TokenCounts(output=9, reasoning=9)
    for number in range(TARGETS_LIMIT + 1):
        hidden.observe(f"p/{number}", tokens, said_bytes=0, first_s=1.0, duration_s=1.0)
    assert (hidden.hides("p/0"), hidden.tokens_per_s("p/0")) == (False, None)
    assert hidden.hides(f"p/{TARGETS_LIMIT}")
    assert len(hidden._rates) == len(hidden._hiding) == TARGETS_LIMIT
