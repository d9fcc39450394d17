"""Optimal switching of the k-th engine under an uncertain rate: when it should be on.

The k-th engine earns its slice of V(n) whatever the others do, so each is a separate problem with
two states. The logarithm of the rate moves by a pull towards its mean plus an observed error. `D`
is the value of being on compared with being off, in pico-USD:
    Q = gain of the next step + mean of D after it         stop while Q < 0
    D = Q, between 0 and c                                 start while Q > c
`c` is the cost of a start: earnings missed during the start, and cold caches. With rent by the
hour, an engine is on for whole blocks, and the end of a block is the time to stop.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log, sqrt
from operator import itemgetter, mul

from router.scaling.residuals import Points

_SPACING = 0.05  # of the grid, in logarithms, for steps of ten minutes; finer for shorter ones
_FINEST = 0.015
# Of the grid beyond the rates at which the engine is partly used; the second for short steps.
_MARGIN, _SHORT_MARGIN = 0.9, 0.6
_SHORT_S = 300.0
_MOST_CELLS = 200
_BLOCKS = 3  # blocks of rent in the horizon
_LEAST_AHEAD = 12  # steps
_EXACT = 1e-3  # of an hour's rent: changes of D below it end the iteration

Earning = Callable[[float], float]  # logarithm expected of the rate -> mean pico-USD an hour
Rows = list[tuple[tuple[float, ...], Callable[[Sequence[float]], tuple[float, ...]]]]


@dataclass(frozen=True, slots=True)
class RateMotion:
    """Motion of the rate's logarithm in one step of `step_s` seconds."""

    step_s: float
    resting: float
    pull: float
    points: Points

    def after(self, level: float) -> float:
        return level + self.pull * (self.resting - level)

    def over(self, steps: int) -> "RateMotion":
        """Return several steps as one; the errors of each fade like the distance to the mean."""
        kept = (1 - self.pull) ** steps
        wider = spread(self.pull, steps)
        points = tuple((error * wider, probability) for error, probability in self.points)
        return RateMotion(self.step_s * steps, self.resting, 1 - kept, points)


@dataclass(frozen=True, slots=True)
class SwitchCosts:
    """Rent per hour, start time and cost of a start, and steps of a paid block."""

    rent: float
    start_s: float
    cold: float = 0.0
    block_steps: int = 1


@dataclass(frozen=True, slots=True)
class SwitchValue:
    """`D` on a grid of logarithms of the rate.

    For blocks, `renewing` and `starting` are the gains of renewing and of starting one over being
    off, by the last rate.
    """

    low: float
    spacing: float
    on: tuple[float, ...]
    renewing: tuple[float, ...] = ()
    starting: tuple[float, ...] = ()

    def at(self, level: float, values: Sequence[float]) -> float:
        """Return one of the three values at this logarithm of the rate."""
        last = len(values) - 1
        place = min(max((level - self.low) / self.spacing, 0.0), float(last))
        cell = min(int(place), last - 1)
        part = place - cell
        return values[cell] * (1 - part) + values[cell + 1] * part

    def mean(self, level: float, points: Points) -> float:
        """Return the mean of `D` one step after a forecast `level`, over its errors."""
        last, found = len(self.on) - 1, 0.0
        for error, probability in points:
            place = (level + error - self.low) / self.spacing
            if place <= 0:
                found += probability * self.on[0]
            elif place >= last:
                found += probability * self.on[last]
            else:
                cell = int(place)
                part = place - cell
                found += probability * (self.on[cell] * (1 - part) + self.on[cell + 1] * part)
        return found


def spread(pull: float, steps: float) -> float:
    """Return the ratio of error width after `steps` steps to that after one."""
    faded = 1 - (1 - pull) ** 2
    wider = steps if faded < 1e-9 else (1 - (1 - pull) ** (2 * steps)) / faded
    return sqrt(wider)


def start_steps(start_s: float, step_s: float) -> list[float]:
    """Return, for each step after a start, the part during which the engine does not serve."""
    whole, rest = divmod(start_s / step_s, 1.0)
    return [1.0] * int(whole) + ([rest] if rest > 1e-9 else [])


class SwitchSolver:
    """Solver for one engine's switching, on a grid around the rates at which it is used."""

    def __init__(
        self, engine: int, dearest: float, motion: RateMotion, rent: float, base: float = 0.0
    ) -> None:
        """Build the grid; `base` is the number of engines that logarithms add to the rate."""
        ratio = max(dearest / max(rent, 1e-9), 0.1)
        margin = _SHORT_MARGIN if motion.step_s < _SHORT_S else _MARGIN
        low = log(engine - 1 + min(1.0, 0.3 / ratio) + base) - margin
        high = log(engine + base) + margin
        spacing = max(_FINEST, min(1.0, motion.step_s / 600) ** 0.5 * _SPACING)
        cells = min(_MOST_CELLS, int((high - low) / spacing) + 1)
        self._low, self._spacing = low, (high - low) / (cells - 1)
        self._levels = [low + self._spacing * cell for cell in range(cells)]
        self._motion = motion
        self._rows = self._transitions(motion)

    def solve(self, earning: Earning, costs: SwitchCosts, steps: int) -> SwitchValue:
        """Iterate `D` until it converges, at most `steps` times."""
        motion, hours = self._motion, self._motion.step_s / 3600
        earned = [hours * earning(motion.after(level)) for level in self._levels]
        rent = hours * costs.rent
        lost, ahead = [costs.cold] * len(earned), earned
        for part in start_steps(costs.start_s, motion.step_s):
            lost = [sum_ + part * item for sum_, item in zip(lost, ahead, strict=True)]
            ahead = self._forward(ahead)
        if costs.block_steps > 1:
            return self._blocks(earned, lost, costs)
        enough = _EXACT * costs.rent
        values = [0.0] * len(earned)
        for _ in range(steps):
            after = self._forward(values)
            following = [
                max(0.0, min(cost, gain - rent + later))
                for gain, later, cost in zip(earned, after, lost, strict=True)
            ]
            moved = max(abs(new - old) for new, old in zip(following, values, strict=True))
            values = following
            if moved < enough:
                break
        return SwitchValue(self._low, self._spacing, tuple(values))

    def _blocks(self, earned: list[float], lost: list[float], costs: SwitchCosts) -> SwitchValue:
        """Return the gain of renewing a paid block over being off and perhaps starting later."""
        count, rent = costs.block_steps, costs.rent * self._motion.step_s / 3600
        part, ahead, parts = [0.0] * len(earned), earned, []
        for _ in range(count):
            part = [sum_ + item - rent for sum_, item in zip(part, ahead, strict=True)]
            parts.append(part)
            ahead = self._forward(ahead)
        whole = self._transitions(self._motion.over(count))
        off = renewed = waited = [0.0] * len(earned)
        held: deque[list[float]] = deque(maxlen=count + 1)
        held.append(off)
        # The last block counts only for the steps before the end; otherwise waiting would be free.
        for step in range(max(_BLOCKS * count, _LEAST_AHEAD)):
            if step < count:
                renewed = parts[step]
            else:
                held.popleft()
                later = _mean(whole, held[0])
                renewed = [item + after for item, after in zip(part, later, strict=True)]
            waited = self._forward(off)
            begun = [renew - cost for renew, cost in zip(renewed, lost, strict=True)]
            off = list(map(max, waited, begun))
            held.append(list(map(max, renewed, waited)))
        renewing = tuple(renew - wait for renew, wait in zip(renewed, waited, strict=True))
        starting = tuple(gain - cost for gain, cost in zip(renewing, lost, strict=True))
        kept = tuple(max(0.0, gain) for gain in renewing)
        return SwitchValue(self._low, self._spacing, kept, renewing, starting)

    def _forward(self, values: Sequence[float]) -> list[float]:
        """Return the mean of `values` one step later, from each cell of the grid."""
        return _mean(self._rows, values)

    def _transitions(self, motion: RateMotion) -> Rows:
        last = len(self._levels) - 1
        rows: Rows = []
        for level in self._levels:
            middle = motion.after(level)
            weights: dict[int, float] = {}
            for error, probability in motion.points:
                place = min(max((middle + error - self._low) / self._spacing, 0.0), float(last))
                cell = min(int(place), last - 1)
                part = place - cell
                weights[cell] = weights.get(cell, 0.0) + probability * (1 - part)
                weights[cell + 1] = weights.get(cell + 1, 0.0) + probability * part
            cells = sorted(weights)
            rows.append((tuple(weights[cell] for cell in cells), itemgetter(*cells)))
        return rows


def _mean(rows: Rows, values: Sequence[float]) -> list[float]:
    return [sum(map(mul, weights, picked(values))) for weights, picked in rows]
