"""A claim is read with its rounding; what does not follow says by how much."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.economics.claimed_figures import judge_claim, read_claimed


@pytest.mark.parametrize(
    ("claimed", "value", "says"),
    [
        ("0.74", "0.7429", "follows from its inputs"),
        ("0.74", "0.76", "does not follow: 3 % above the claim"),
        ("30 to 40", "35", "follows from its inputs"),
        ("30 to 40", "14.2857", "does not follow: 2.1 times less than claimed"),
        ("1050..5000", "1044", "follows from its inputs"),
        ("over 100e9", "34561064960", "does not follow: 2.89 times less than claimed"),
        ("over 100e9", "276488519680", "follows from its inputs"),
        ("at most 1", "1.0591", "does not follow: 6 % above the claim"),
        ("47,000,000", "352800000", "does not follow: 7.51 times the claim"),
        ("8000", "-5456", "does not follow from its inputs"),
        ("0.4", "0", "does not follow from its inputs"),
        ("not stated", "5", "derived: the figure is not stated"),
        ("", "5", "derived: the figure is not stated"),
    ],
)
def test_judgements(claimed: str, value: str, says: str) -> None:
    assert judge_claim(claimed, Fraction(value)) == says


@given(value=st.fractions(min_value=-(10**12), max_value=10**12), places=st.integers(0, 6))
def test_a_figure_follows_from_what_rounds_to_it(value: Fraction, places: int) -> None:
    text = f"{float(round(value, places)):.{places}f}"
    if places or abs(value) > 50:  # a whole number stands for no more than 2 % beside it
        assert judge_claim(text, value) == "follows from its inputs"


@given(value=st.fractions(min_value=Fraction(1, 100), max_value=10**9), off=st.integers(2, 9))
def test_a_figure_that_is_off_never_follows(value: Fraction, off: int) -> None:
    claimed = f"{float(value * off):.6f}"
    assert judge_claim(claimed, value).startswith("does not follow")


@pytest.mark.parametrize("text", ["many", "1 2", "1 to", "over", "inf", "nan", "1e9999"])
def test_what_is_no_figure_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a figure"):
        read_claimed(text)
