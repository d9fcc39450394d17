"""Running statistics in bounded memory: fading moments, a histogram, recent cells.

A cell with `n` observations is blended with a wider one by `n / (n + 20)`. A full cell halves the
weight of its past, so that a shift becomes visible. All sums are additive, so processes can be
merged.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, ItemsView
from math import ceil, inf, log2
from typing import Generic, TypeVar

from router.feedback import BRIEF_TOKENS

SHRINK = 20.0  # observations at which a cell weighs as much as the wider one
BINS_PER_OCTAVE = 8  # a quantile is at most 9 % too long, never too short
QUANTILE = 0.95
REFRESH = 0.05  # a quantile is computed again when the cell grew by this share
NEGLIGIBLE = 0.01  # a bin that faded below this weight is dropped
_BRIEF_BINS = range(1, ceil(BINS_PER_OCTAVE * log2(BRIEF_TOKENS)) + 1)  # one token has no gap

_Key = TypeVar("_Key", bound=Hashable)
_Cell = TypeVar("_Cell")


class RunningMoments:
    """Running mean and mean square; each `fade` observations halve the weight of the past."""

    __slots__ = ("fade", "mean", "square", "weight")

    def __init__(self, fade: float) -> None:
        self.fade, self.weight, self.mean, self.square = fade, 0.0, 0.0, 0.0

    def add(self, mean: float, square: float, weight: float = 1.0) -> None:
        if weight <= 0.0:
            return
        if self.weight >= self.fade:
            self.weight *= 0.5
        self.weight += weight
        self.mean += (mean - self.mean) * weight / self.weight
        self.square += (square - self.square) * weight / self.weight

    def age(self, share: float) -> None:
        """Multiply the weight of all observations by `share`."""
        self.weight *= share

    def lean(self, own: float, wider: float) -> float:
        """Return the mean of `own` and `wider`, weighted by the observations of this cell."""
        share = self.weight / (self.weight + SHRINK)
        return share * own + (1.0 - share) * wider

    def export(self) -> tuple[float, float, float]:
        return self.weight, self.mean, self.square


class LogHistogram:
    """Counts in logarithmic bins; the 95th percentile errs to the long side.

    A value cut off at some length would have been longer: it counts among the lengths up to there
    and gives no information beyond (the product-limit estimate of Kaplan and Meier, 1958).
    """

    __slots__ = (
        "_brief", "_brief_grown", "_grown", "_p95", "bins", "cuts", "fade", "weight",
    )  # fmt: skip

    def __init__(self, fade: float) -> None:
        self.fade, self.weight = fade, 0.0
        self.bins: dict[int, float] = {}
        self.cuts: dict[int, float] = {}  # of `bins`, what was cut off there
        # Each is recomputed when it is read, so that reading one does not delay the other.
        self._p95 = self._grown = self._brief = self._brief_grown = 0.0

    def add(self, number: float, *, cut: bool = False) -> None:
        place = ceil(BINS_PER_OCTAVE * log2(number)) if number > 1 else 0
        self.add_bin(place, 1.0, 1.0 if cut else 0.0)

    def add_bin(self, index: int, weight: float, cut: float = 0.0) -> None:
        """Add `weight` to a bin; `cut` of it was cut off at that length."""
        if self.weight >= self.fade:
            self.bins = {i: 0.5 * w for i, w in self.bins.items() if w >= NEGLIGIBLE}
            self.cuts = {i: 0.5 * w for i, w in self.cuts.items() if i in self.bins}
            self.weight = sum(self.bins.values())
        self.bins[index] = self.bins.get(index, 0.0) + weight
        if cut:
            self.cuts[index] = self.cuts.get(index, 0.0) + cut
        self.weight += weight
        self._grown += weight
        self._brief_grown += weight

    def age(self, share: float) -> None:
        """Multiply the weight of all observations by `share`; quantiles do not change."""
        self.bins = {i: share * weight for i, weight in self.bins.items()}
        self.cuts = {i: share * weight for i, weight in self.cuts.items()}
        self.weight *= share
        self._grown *= share
        self._brief_grown *= share

    def export(self) -> tuple[tuple[int, float, float], ...]:
        return tuple((i, self.bins[i], self.cuts.get(i, 0.0)) for i in sorted(self.bins))

    def p95(self) -> float:
        """Return the upper edge of the bin with the 95th percentile; 0 without observations.

        The result is infinite if too many values were cut off: their full lengths are unknown.
        """
        if self._grown and self._grown >= REFRESH * self.weight:
            self._grown = 0.0
            self._p95 = self._quantile()
        return self._p95

    def brief_share(self) -> float:
        """Return the share of answers of 2 to `BRIEF_TOKENS` tokens; 0 without observations."""
        if self._brief_grown and self._brief_grown >= REFRESH * self.weight:
            self._brief_grown = 0.0
            brief = sum(self.bins.get(index, 0.0) for index in _BRIEF_BINS)
            self._brief = brief / self.weight
        return self._brief

    def _quantile(self) -> float:
        longer, at_risk = 1.0, self.weight
        for index in sorted(self.bins):
            here = self.bins[index]
            ended = here - self.cuts.get(index, 0.0)
            longer *= max(0.0, 1.0 - ended / max(at_risk, here))  # sums of floats are not exact
            at_risk -= here
            if longer <= 1.0 - QUANTILE:
                return float(2.0 ** (index / BINS_PER_OCTAVE))
        return inf


class RecencyCache(Generic[_Key, _Cell]):
    """A cache of at most `limit` cells; the least recently used cell is dropped first."""

    def __init__(self, limit: int, make: Callable[[], _Cell]) -> None:
        self.limit = limit
        self.dropped = 0
        self._make = make
        self._cells: OrderedDict[_Key, _Cell] = OrderedDict()

    def get(self, key: _Key) -> _Cell | None:
        return self._cells.get(key)

    def touch(self, key: _Key) -> _Cell:
        """Return the key's cell, made if it is missing."""
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = self._make()
            if len(self._cells) > self.limit:
                self._cells.popitem(last=False)
                self.dropped += 1
        else:
            self._cells.move_to_end(key)
        return cell

    def drop(self, matches: Callable[[_Key], bool]) -> int:
        """Drop the cells whose keys match and return how many were dropped."""
        found = [key for key in self._cells if matches(key)]
        for key in found:
            del self._cells[key]
        return len(found)

    def items(self) -> ItemsView[_Key, _Cell]:
        return self._cells.items()
