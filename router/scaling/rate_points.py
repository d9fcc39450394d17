"""Means over the errors of a forecast, from cumulative sums and a binary search.

The earnings of an engine are made of parts that grow with the rate up to a limit. The mean of such
a part needs only the sums below and above the rate at which the limit is reached.
"""

from bisect import bisect_left
from itertools import accumulate
from math import exp, inf, log

from router.scaling.residuals import Points


class RatePoints:
    """Errors of a rate's logarithm with their probabilities, and cumulative sums of both.

    The rate of an error is `exp(level + error) - base`, in engines, and at least zero.
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
        """Return the mean of min(`limit`, rate), in engines."""
        if limit <= 0:
            return 0.0
        first = self._place(base, level)
        full = max(first, self._place(limit + base, level))
        below = exp(level) * (self._sums[full] - self._sums[first])
        below -= base * (self._shares[full] - self._shares[first])
        return below + limit * (self._shares[-1] - self._shares[full])

    def _place(self, rate: float, level: float) -> int:
        """Return the number of errors that give less than this rate."""
        return bisect_left(self._errors, (log(rate) if rate > 0 else -inf) - level)
