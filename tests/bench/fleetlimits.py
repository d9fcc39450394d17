"""What information is worth to a plan of engines: abilities that are taken from the clairvoyant.

Each way of sizing here knows something that nobody can know, so that what it still loses is not
lost for want of that. `fitted` is the feasible bound of a forecast by regression: it knows its best
coefficients, the sizes of its errors and their distribution of the counted steps beforehand, and of
each step what came before it. The losses of our own plan are told by where they arise.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
from fleetplay import RentRule, Rule, clairvoyant, fixed, play
from fleetrules import PlannerRule
from fleetseries import DAY_S, Series

from router.scaling import planner as planning
from router.scaling.demand import BASE_WORK
from router.scaling.residuals import Points

_SHARES = 40  # points of a fitted distribution
_MEMORIES_S = (2_400, 3_600, 5_400, 10_800)  # over which the size of errors may be learned


class InformedRule(PlannerRule):
    """Our planner with another's forecast: the logarithm expected of each step, and its errors."""

    def __init__(
        self,
        series: Series,
        billing: RentRule,
        expected: np.ndarray,
        errors: Callable[[int], Points],
    ) -> None:
        super().__init__(series, billing)
        rule = self
        self._step = 0

        class InformedChoice(planning.EngineChoice):
            def __init__(self, *given: Any) -> None:
                super().__init__(*given)
                points = errors(rule._step)
                self._expected = float(expected[rule._step])
                self._points, self._few_points = planning.RatePoints(points), points

        self._choice = InformedChoice

    def __call__(self, step: int, ages: list[int]) -> int:
        self._step = step
        with patch.object(planning, "EngineChoice", self._choice):
            return super().__call__(step, ages)


def limits(series: Series, billing: RentRule) -> dict[str, float]:
    """Return the share of the gap that each closes, best fixed number to clairvoyant."""
    levels = np.log(series.rates + BASE_WORK)
    expected, errors, points = fitted(series)
    wanted = clairvoyant_engines(series, billing)
    rules: dict[str, Rule] = {
        "ours": PlannerRule(series, billing),
        "clairvoyant, a step late": lambda step, ages: int(wanted[max(0, step - 1)]),
        "next step known": InformedRule(series, billing, levels, lambda step: ((0.0, 1.0),)),
        "size of the error known": InformedRule(
            series, billing, expected,
            lambda step: ((-abs(errors[step]), 0.5), (abs(errors[step]), 0.5)),
        ),
        "fitted": InformedRule(series, billing, expected, points),
    }  # fmt: skip
    most, least = fixed(series)[0].total, clairvoyant(series, billing).total
    return {
        name: (most - play(series, billing, rule).total) / (most - least)
        for name, rule in rules.items()
    }


def clairvoyant_engines(series: Series, billing: RentRule) -> np.ndarray:
    """Return how many engines the clairvoyant has in each step."""
    counts: list[int] = []
    clairvoyant(series, billing, counts)
    return np.array(counts)


def fitted(series: Series) -> tuple[np.ndarray, np.ndarray, Callable[[int], Points]]:
    """Return what the best regression expects of each step, its errors, and their distribution."""
    levels = np.log(series.rates + BASE_WORK)
    steps = np.arange(len(levels))
    before = [levels[np.maximum(0, steps - back)] for back in range(4)]
    day = DAY_S // series.step_s
    turn = 2 * np.pi * steps / day
    yesterday = [levels[np.maximum(0, steps - day - back)] for back in range(2)]
    features = np.column_stack(
        [np.ones(len(levels)), _mean(levels, 60_000, series) - before[1],
         _mean(levels, 12_000, series) - before[1], before[1] - before[2], before[2] - before[3],
         (yesterday[0] - yesterday[1]) * (steps > day),
         *(wave(turns * turn) for turns in (1, 2) for wave in (np.sin, np.cos))]
    )  # fmt: skip
    counted = steps >= max(2, series.counted_from)
    moves, known = levels - before[1], features[counted]
    found = np.linalg.lstsq(known, moves[counted], rcond=None)[0]
    for _ in range(20):  # least absolute errors, by weights
        weights = 1 / np.maximum(np.abs(moves - features @ found), 0.01)[counted, None]
        small = 1e-6 * np.eye(features.shape[1])
        found = np.linalg.solve(known.T @ (weights * known) + small,
                                (weights * known).T @ moves[counted])  # fmt: skip
    errors = moves - features @ found
    sizes = [_mean(np.minimum(np.abs(errors), 0.7), memory_s, series) for memory_s in _MEMORIES_S]
    size = max(sizes, key=lambda each: -float(
        (np.log(each + 0.005) + np.abs(errors) / (each + 0.005))[counted].mean()
    )) + 0.005  # fmt: skip
    ratios = np.quantile((errors / size)[counted], (np.arange(_SHARES) + 0.5) / _SHARES)

    def points(step: int) -> Points:
        return tuple((float(ratio * size[step]), 1 / _SHARES) for ratio in ratios)

    return before[1] + features @ found, errors, points


def losses(series: Series, billing: RentRule) -> Counter[str]:
    """Return our plan's loss by where it arises, as a share of the gap, without that of starts."""
    counts: list[int] = []
    planner = PlannerRule(series, billing)

    def noted(step: int, ages: list[int]) -> int:
        counts.append(planner(step, ages))
        return counts[-1]

    play(series, billing, noted)
    best = clairvoyant_engines(series, billing)
    gap = fixed(series)[0].total - clairvoyant(series, billing).total
    found: Counter[str] = Counter()
    for place in range(max(*counts, int(best.max()))):
        ours, theirs = np.array(counts) > place, best > place
        earned = series.prices * np.clip(series.rates - place, 0, 1) - series.rents
        for begin, end in _runs(ours & ~theirs) + _runs(theirs & ~ours):
            counted = slice(max(begin, series.counted_from), end)
            before = begin > 0 and bool(ours[begin - 1] and theirs[begin - 1])
            after = end < len(ours) and bool(ours[end] and theirs[end])
            sign = -1 if ours[begin] else 1
            lost = sign * earned[counted].sum() * series.step_s / 3600
            found[_KINDS[bool(ours[begin]), before, after]] += lost / gap
    return found


_KINDS = {  # ours is on, both were on before, both are on after
    (True, True, True): "kept over a gap", (True, True, False): "stopped late",
    (True, False, True): "started early", (True, False, False): "started in vain",
    (False, True, True): "off within", (False, True, False): "stopped early",
    (False, False, True): "started late", (False, False, False): "never started",
}  # fmt: skip


def _runs(differs: np.ndarray) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[0], differs.astype(int), [0]])))
    return [(int(begin), int(end)) for begin, end in edges.reshape(-1, 2)]


def _mean(values: np.ndarray, memory_s: float, series: Series) -> np.ndarray:
    """Return the mean of what came before each step, over about this time."""
    follow, mean, found = 1 - np.exp(-series.step_s / memory_s), float(values[0]), []
    for step, value in enumerate(values.tolist()):
        found.append(mean)
        mean += max(1 / (step + 1), follow) * (value - mean)
    return np.array(found)
