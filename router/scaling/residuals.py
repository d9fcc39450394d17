"""Forecast errors: a histogram in bounded memory that forgets slowly.

Errors are differences of logarithms. Bins are narrow around zero and wide at the tails. Each bin
keeps its weight and its sum, so that its mean is exact. A few wide initial errors stand for what is
not yet observed.
"""

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from math import asinh, exp, sqrt

_HALF = 40  # bins on each side of zero
_SCALE = 0.01  # an error up to which bins have equal widths
_LARGEST = 3.0
_STEP = asinh(_LARGEST / _SCALE) / _HALF
# Shares of the probability that one point stands for: tails are split finely, the middle is not.
_EDGES = (
    0.0, 0.004, 0.015, 0.04, 0.08, 0.14, 0.22, 0.32, 0.44,
    0.56, 0.68, 0.78, 0.86, 0.92, 0.96, 0.985, 0.996, 1.0,
)  # fmt: skip
FEW_POINTS = _EDGES
MANY_POINTS = tuple(sorted({*_EDGES, *((low + high) / 2 for low, high in pairwise(_EDGES))}))
_UNREST_S, _CALM_S = 10_800.0, 172_800.0  # time constants of the sizes of errors
_FIRST_SIZE = 0.08  # of an error after ten minutes, until some were seen
_LARGEST_SIZE = 0.7
_NARROWEST, _WIDEST = 0.3, 3.0
_PRETENDED = (-0.2, -0.03, 0.0, 0.0, 0.0, 0.0, 0.0, 0.03, 0.2)

Points = tuple[tuple[float, float], ...]  # an error and its probability


class ErrorHistogram:
    """Errors of one forecast. `keep` is the share of the weight left after one observation."""

    __slots__ = ("_keep", "_sums", "_unit", "_weights")

    def __init__(self, keep: float, spread: float = 1.0) -> None:
        self._keep = keep
        self._unit = 1.0  # weight of the next observation: it grows in place of all others' decay
        self._weights = [0.0] * (2 * _HALF + 1)
        self._sums = [0.0] * (2 * _HALF + 1)
        for error in _PRETENDED:
            self._put(error * spread)

    def add(self, error: float) -> None:
        self._unit /= self._keep
        self._put(error)
        if self._unit > 1e6:
            self._weights = [weight / self._unit for weight in self._weights]
            self._sums = [total / self._unit for total in self._sums]
            self._unit = 1.0

    def points(self, edges: Sequence[float] = FEW_POINTS) -> Points:
        """Return the mean error between these quantiles, each with its probability."""
        total = sum(self._weights)
        found: list[tuple[float, float]] = []
        cells = [
            (weight / total, errors / weight)
            for weight, errors in zip(self._weights, self._sums, strict=True)
            if weight > 0
        ]
        place, left = 0, cells[0][0]
        for low, high in pairwise(edges):
            need, mean, mass = high - low, 0.0, 0.0
            while need > 1e-12 and place < len(cells):
                part = min(need, left)
                mean += part * cells[place][1]
                mass += part
                need -= part
                left -= part
                if left <= 1e-12:
                    place += 1
                    left = cells[place][0] if place < len(cells) else 0.0
            if mass > 0:
                found.append((mean / mass, mass))
        whole = sum(mass for _, mass in found)
        return tuple((error, mass / whole) for error, mass in found)

    def quantile(self, share: float) -> float:
        """Return the error that `share` of the errors do not exceed, as a bin's mean."""
        total = sum(self._weights)
        sums = accumulate(self._weights)
        for place, below in enumerate(sums):
            if below >= share * total and self._weights[place] > 0:
                return self._sums[place] / self._weights[place]
        return 0.0

    def memory(self) -> dict[str, object]:
        return {
            "weights": [weight / self._unit for weight in self._weights],
            "sums": [total / self._unit for total in self._sums],
        }

    def recall(self, memory: Mapping[str, object]) -> None:
        """Restore the state of `memory`. Raises `ValueError` for another shape."""
        rows = []
        for name in ("weights", "sums"):
            row = memory.get(name)
            values = row if isinstance(row, list) else []
            if len(values) != len(self._weights):
                raise ValueError(f"{name}: errors of a forecast are {len(self._weights)} numbers")
            rows.append([float(item) for item in values])
        self._weights, self._sums = rows
        self._unit = 1.0

    def _put(self, error: float) -> None:
        place = _HALF + round(asinh(max(-_LARGEST, min(_LARGEST, error)) / _SCALE) / _STEP)
        self._weights[place] += self._unit
        self._sums[place] += self._unit * max(-_LARGEST, min(_LARGEST, error))


class ErrorWidth:
    """Current size of errors relative to their usual size; rates alternate in volatility.

    Multiply a usual error by `ratio` to get a current one.
    """

    __slots__ = ("_calm", "_follow_calm", "_follow_unrest", "_unrest")

    def __init__(self, step_s: float) -> None:
        self._unrest = self._calm = _FIRST_SIZE * sqrt(min(1.0, step_s / 600))
        self._follow_unrest = 1 - exp(-step_s / _UNREST_S)
        self._follow_calm = 1 - exp(-step_s / _CALM_S)

    @property
    def ratio(self) -> float:
        return max(_NARROWEST, min(_WIDEST, self._unrest / self._calm))

    @property
    def size(self) -> float:
        """Return the current size of errors, in logarithms."""
        return max(self._unrest, _SCALE)

    def add(self, error: float) -> None:
        size = min(abs(error), _LARGEST_SIZE)
        self._unrest += self._follow_unrest * (size - self._unrest)
        self._calm += self._follow_calm * (size - self._calm)

    def memory(self) -> list[float]:
        return [self._unrest, self._calm]

    def recall(self, sizes: Sequence[float]) -> None:
        """Restore the state of `memory`. Raises `ValueError` unless all sizes are positive."""
        self._unrest, self._calm = sizes
        if min(sizes) <= 0:
            raise ValueError("sizes: those of a forecast's errors are above zero")


def widened(points: Points, ratio: float) -> Points:
    """Return the errors multiplied by `ratio`, with the same probabilities."""
    return tuple((error * ratio, probability) for error, probability in points)
