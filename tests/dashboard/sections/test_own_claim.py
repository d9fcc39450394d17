"""A figure is shown with up to four places; the form itself is tested on its page."""

from fractions import Fraction

import pytest

from dashboard.sections.own_claim import figure


@pytest.mark.parametrize(
    ("value", "shown"),
    [(Fraction(1, 3), "0.3333"), (Fraction(1_234_500), "1,234,500"), (Fraction(-3, 2), "-1.5")],
)
def test_figures(value: Fraction, shown: str) -> None:
    assert figure(value) == shown
