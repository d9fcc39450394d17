"""Means over a forecast's errors in few steps: sums of probabilities are kept, errors are searched.

What engines earn is made of parts that grow with the rate up to a limit. The mean of such a part
needs the sums below and above the rate at which its limit is reached, and no look at every error.
"""

from bisect import bisect_left
from itertools import accumulate
from math import exp, inf, log

from router.scaling.residuals import Points


class RatePoints:
    """Errors of a rate's logarithm with their probabilities, and the sums of both.

    `rate` below is `exp(level + error) - base`, in engines, and never below zero.
    """

    __slots__ = ("_errors", "_points", "_shares", "_sums")

    def __init__(self, points: Points) -> None:
        self._points = tuple(sorted(points))
        self._errors = [error for error, _ in self._points]
        self._shares = [0.0, *accumulate(share for _, share in self._points)]
        self._sums = [0.0, *accumulate(share * exp(error) for error, share in self._points)]

    def rates(self, level: float, base: float) -> list[tuple[float, float]]:
        """Return each rate with its probability."""
        return [(max(0.0, exp(level + error) - base), share) for error, share in self._points]

    def mean_up_to(self, limit: float, level: float, base: float = 0.0) -> float:
        """Return the mean of the smaller of `limit`, in engines, and the rate."""
        if limit <= 0:
            return 0.0
        first = self._place(base, level)
        full = max(first, self._place(limit + base, level))
        below = exp(level) * (self._sums[full] - self._sums[first])
        below -= base * (self._shares[full] - self._shares[first])
        return below + limit * (self._shares[-1] - self._shares[full])

    def _place(self, rate: float, level: float) -> int:
        """Return how many errors lead to less than this rate."""
        return bisect_left(self._errors, (log(rate) if rate > 0 else -inf) - level)
