"""Online forecast of a rate: mean of the next window in logarithms, and its errors.

A rate moves towards its own means over hours and over a day, loses part of its last move, and
follows the hours of earlier days as far as they helped before. The weights are fitted by recursive
least squares with forgetting, from a prior that holds for known rates. Error widths follow the last
hours, and volatile hours weigh less. Rates are learned as logarithms above a base of a few
requests, because logarithms of lower rates are noise. Memory use is constant.
"""

from collections.abc import Mapping
from math import exp, isfinite, log

from router.scaling.residuals import ErrorHistogram, ErrorWidth

BASE_RATE = 0.01  # added to a rate before its logarithm
BASE_WORK = 0.1  # the same of work in engines: below it no engine earns its rent at any usual price
_SHORT_S, _LONG_S = 12_000.0, 60_000.0  # time constants of the two means
_SLOTS = 144  # of a day
_SLOT_S = 600.0
_SPREAD = ((-3, 0.3), (-2, 0.5), (-1, 0.8), (0, 1.0), (1, 0.8), (2, 0.5), (3, 0.3))
_KEEP = 0.998  # of what was learned, after ten minutes
_ERRORS_KEEP = 0.9993  # of the errors, after ten minutes: ten days
_LARGEST_MOVE = 0.7  # of a forecast, and the largest that is learned from
_PRIOR = (0.0, 0.05, 0.05, -0.1, 0.0, 0.0)
_PRIOR_WEIGHT = 6.0
_SIZE = len(_PRIOR)
_INTERCEPT = 0.3
_LARGEST_MISS = 1.6  # of the present size of errors, that is learned from
_LEAST_DRIFT = 0.01  # below this value no pull can be estimated
_UNSURE = 5.0  # total uncertainty of the features above which forgetting stops


class RateForecaster:
    """Forecaster of one rate, observed in windows of `step_s` seconds."""

    __slots__ = (
        "_away", "_before", "_betas", "_covariance", "_drift", "_errors", "_hours", "_last",
        "_long", "_move", "_scale", "_short", "_slot", "_width", "base", "seen", "step_s",
    )  # fmt: skip

    def __init__(self, step_s: float, base: float = BASE_RATE) -> None:
        self.step_s, self.base = step_s, base
        self.seen = 0
        self._scale = step_s / _SLOT_S
        self._last = self._short = self._long = self._move = self._before = 0.0
        self._away = 0.0  # from the mean, one step before
        self._slot = 0
        self._betas = [_PRIOR[0], *(beta * min(1.0, self._scale) for beta in _PRIOR[1:3])]
        self._betas += [*_PRIOR[3:]]
        self._covariance = [
            [1 / _PRIOR_WEIGHT if row == column else 0.0 for column in range(_SIZE)]
            for row in range(_SIZE)
        ]
        self._errors = ErrorHistogram(_ERRORS_KEEP**self._scale, spread=min(1.0, self._scale**0.5))
        self._width = ErrorWidth(step_s)
        self._hours = [[0.0, 0.0] for _ in range(_SLOTS)]
        self._drift = [0.1 * self._scale, 1.0]  # sums that the pull towards the mean is made of

    @property
    def errors(self) -> ErrorHistogram:
        return self._errors

    @property
    def last(self) -> float:
        """Return the logarithm of the last rate."""
        return self._last

    @property
    def resting(self) -> float:
        """Return the logarithm towards which the rate moves over hours."""
        return self._long

    @property
    def pull(self) -> float:
        """Return the share of its distance to `resting` that a rate loses in one step."""
        return max(0.0, min(0.5, self._drift[0] / max(self._drift[1], _LEAST_DRIFT)))

    @property
    def width(self) -> float:
        """Return the ratio of the current error width to that of `errors`."""
        return self._width.ratio

    def level(self, rate: float) -> float:
        """Return the logarithm under which a rate is learned."""
        return log(max(rate, 0.0) + self.base)

    def rate(self, level: float) -> float:
        """Return the rate of a logarithm from `level` or `expected`; at least 0."""
        return max(0.0, exp(level) - self.base)

    def observe(self, rate: float, ends_s: float) -> None:
        """Learn from one window that ended at `ends_s`, seconds of a clock with whole days."""
        level = self.level(rate)
        if not self.seen:
            self._last = self._short = self._long = level
        if self.seen:
            self._learn(level)
        self._follow(level, int((ends_s - self.step_s / 2) // _SLOT_S))
        self._slot = int(ends_s // _SLOT_S) % _SLOTS
        self.seen += 1

    def expected(self) -> float:
        """Return the logarithm of the next window's rate."""
        moves = zip(self._betas, self._features(), strict=True)
        move = sum(beta * feature for beta, feature in moves)
        return self._last + max(-_LARGEST_MOVE, min(_LARGEST_MOVE, move))

    def _features(self) -> tuple[float, ...]:
        return (
            _INTERCEPT,
            self._long - self._last,
            self._short - self._last,
            self._move,
            (self._usual(self._slot) - self._usual(self._slot - 1)) * min(1.0, self._scale),
            self._before,
        )

    def _usual(self, slot: int) -> float:
        total, weight = self._hours[slot % _SLOTS]
        return total / (weight + 1.0)

    def _learn(self, level: float) -> None:
        error, width = level - self.expected(), self.width
        self._errors.add(error / width)
        self._width.add(error)
        features = self._features()
        target = max(-1.0, min(1.0, level - self._last))
        away = self._long - self._last
        keep = _KEEP**self._scale
        # The distance of the step before is used: the last one contains the noise of the last rate,
        # which is gone in the next step and would look like a pull.
        gone, before = self._drift, self._away
        self._drift = [keep * gone[0] + before * target, keep * gone[1] + before * away]
        self._away = away
        rows = self._covariance
        gain = [sum(cell * feature for cell, feature in zip(row, features, strict=True))
                for row in rows]  # fmt: skip
        known = keep * width**2 + sum(
            part * feature for part, feature in zip(gain, features, strict=True)
        )
        missed = target - sum(
            beta * feature for beta, feature in zip(self._betas, features, strict=True)
        )
        most = _LARGEST_MISS * self._width.size
        missed = max(-most, min(most, missed))
        self._betas = [
            beta + part / known * missed for beta, part in zip(self._betas, gain, strict=True)
        ]
        # An idle feature must not let its uncertainty grow without end.
        grow = 1 / keep if sum(rows[place][place] for place in range(_SIZE)) < _UNSURE else 1.0
        self._covariance = [
            [
                (rows[row][column] - gain[row] * gain[column] / known) * grow
                for column in range(_SIZE)
            ]
            for row in range(_SIZE)
        ]

    def _follow(self, level: float, slot: int) -> None:
        self._before, self._move = self._move, level - self._last
        self._last = level
        first = 1 / (self.seen + 1)
        self._short += max(first, 1 - exp(-self.step_s / _SHORT_S)) * (level - self._short)
        self._long += max(first, 1 - exp(-self.step_s / _LONG_S)) * (level - self._long)
        for away, weight in _SPREAD:
            hour = self._hours[(slot + away) % _SLOTS]
            hour[0] += weight * self._scale * (level - self._long)
            hour[1] += weight * self._scale

    def _levels(self) -> tuple[float, ...]:
        moves = (self._move, self._before, self._away)
        return (self._last, self._short, self._long, *moves)

    def memory(self) -> dict[str, object]:
        """Return the learned state as a JSON value."""
        return {
            "step_s": self.step_s,
            "base": self.base,
            "seen": self.seen,
            "state": [*self._levels(), float(self._slot)],
            "betas": list(self._betas),
            "covariance": [cell for row in self._covariance for cell in row],
            "hours": [part for hour in self._hours for part in hour],
            "drift": list(self._drift),
            "errors": self._errors.memory(),
            "width": self._width.memory(),
        }

    @classmethod
    def from_memory(cls, memory: Mapping[str, object]) -> "RateForecaster":
        """Return a forecaster restored from `memory()`. Raises `ValueError` if it is invalid."""
        (step_s,) = numbers(memory, "step_s", 1)
        (base,) = numbers(memory, "base", 1)
        found = cls(step_s, base)
        (seen,) = numbers(memory, "seen", 1)
        found.seen = int(seen)
        *state, slot = numbers(memory, "state", 7)
        found._last, found._short, found._long, found._move, found._before, found._away = state
        found._slot = int(slot)
        found._betas = numbers(memory, "betas", _SIZE)
        cells = numbers(memory, "covariance", _SIZE * _SIZE)
        found._covariance = [cells[row * _SIZE : (row + 1) * _SIZE] for row in range(_SIZE)]
        hours = numbers(memory, "hours", 2 * _SLOTS)
        found._hours = [hours[slot : slot + 2] for slot in range(0, 2 * _SLOTS, 2)]
        found._drift = numbers(memory, "drift", 2)
        found._errors.recall(member(memory, "errors"))
        found._width.recall(numbers(memory, "width", 2))
        return found


def member(memory: Mapping[str, object], name: str) -> Mapping[str, object]:
    """Return a mapping of a memory. Raises `ValueError` with its name if it is missing."""
    part = memory.get(name)
    if isinstance(part, Mapping):
        return part
    raise ValueError(f"{name}: the memory of a forecast has no such part")


def numbers(memory: Mapping[str, object], name: str, count: int) -> list[float]:
    """Return `count` numbers of a memory as a list. Raises `ValueError` with the name."""
    value = memory.get(name)
    values = value if isinstance(value, list) else [value]
    found = [float(item) for item in values if isinstance(item, int | float)]
    if len(values) != count or len(found) != count or not all(map(isfinite, found)):
        raise ValueError(f"{name}: the memory of a forecast needs {count} numbers")
    return found
