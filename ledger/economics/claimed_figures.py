"""Comparison of a stated figure with the value that its own inputs give.

A figure stands for every value that rounds to it: `0.74` for 0.735 to 0.745. `30 to 40` and `1..2`
are ranges; `over 100e9` and `at most 1` have one end.
"""

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

_NUMBER = r"[+-]?(?:\d[\d,]*\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?"
_RANGE = re.compile(rf"\s*({_NUMBER})\s*(?:to|\.\.|-)\s*({_NUMBER})\s*")
_ONE = re.compile(rf"\s*(over|more than|at least|under|less than|at most)?\s*({_NUMBER})\s*")
NOT_STATED = "not stated"
NEAR = Fraction(2, 100)


@dataclass(frozen=True, slots=True)
class ClaimedFigure:
    """A range `low <= x <= high` as written, each end with its rounding. `None` is no end."""

    low: Fraction | None
    high: Fraction | None
    slack_low: Fraction = Fraction(0)
    slack_high: Fraction = Fraction(0)

    def holds(self, value: Fraction) -> bool:
        return (self.low is None or value >= self.low - self.slack_low) and (
            self.high is None or value <= self.high + self.slack_high
        )

    def nearest(self, value: Fraction) -> Fraction:
        """Return the end to compare with a value outside the range."""
        is_below = self.low is not None and value < self.low
        end = self.low if is_below or self.high is None else self.high
        assert end is not None  # one end is there
        return end


def read_claimed(text: str) -> ClaimedFigure | None:
    """Return the claimed range, `None` if the text states none. Raises `ValueError`."""
    if not text.strip() or text.strip().lower() == NOT_STATED:
        return None
    match = _RANGE.fullmatch(text)
    if match is not None:
        (low, slack_low), (high, slack_high) = sorted((_read(match[1]), _read(match[2])))
        return ClaimedFigure(low, high, slack_low, slack_high)
    match = _ONE.fullmatch(text)
    if match is None:
        raise ValueError(f"`{text}` is not a figure: write 1.5, 30 to 40, over 100 or at most 1")
    (value, slack), word = _read(match[2]), match[1]
    if word in {"over", "more than", "at least"}:
        return ClaimedFigure(value, None, slack_low=slack)
    if word in {"under", "less than", "at most"}:
        return ClaimedFigure(None, value, slack_high=slack)
    return ClaimedFigure(value, value, slack, slack)


def judge_claim(claimed: str, value: Fraction) -> str:
    """Return a sentence on whether the claim follows from its inputs, is derived, or is off."""
    figure = read_claimed(claimed)
    if figure is None:
        return "derived: the figure is not stated"
    if figure.holds(value):
        return "follows from its inputs"
    nearest = figure.nearest(value)
    if not nearest or not value or (nearest < 0) != (value < 0):
        return "does not follow from its inputs"
    times = value / nearest
    if times >= 2 or times <= Fraction(1, 2):
        factor = float(times if times >= 1 else 1 / times)
        word = "times the claim" if times > 1 else "times less than claimed"
        return f"does not follow: {factor:.3g} {word}"
    share = float(abs(times - 1)) * 100
    return f"does not follow: {share:.0f} % {'above' if times > 1 else 'below'} the claim"


def _read(text: str) -> tuple[Fraction, Fraction]:
    """Return the number and its tolerance."""
    number = Decimal(text.replace(",", ""))
    exponent = number.as_tuple().exponent
    assert isinstance(exponent, int)  # no number that is written so is infinite
    half = Fraction(10) ** exponent / 2 if exponent < 0 else Fraction(0)
    return Fraction(number), max(half, abs(Fraction(number)) * NEAR)
