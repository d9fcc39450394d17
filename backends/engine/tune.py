"""Search for the best flags: coordinate descent with successive halving. Pure.

The search yields trials and receives scores (higher is better), so that a log of scores replays it.
It improves one dimension at a time and keeps the best choices of the others. Candidates are
measured briefly first, and those that may still win are measured longer. A candidate replaces the
best only if it is better by more than `margin`, so that noise does not change a flag. The search
ends when a round over all dimensions brings no change.
"""

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass

Arm = tuple[str, ...]  # name of the chosen value in each dimension


@dataclass(frozen=True, slots=True)
class FlagValue:
    """Value of a flag. `exact` values do not change the model's numbers.

    Other values have to be judged by `engine eval`.
    """

    name: str
    flags: tuple[str, ...] = ()
    exact: bool = True


@dataclass(frozen=True, slots=True)
class FlagDimension:
    """Flag and its values. The first one is vLLM's default, without a flag."""

    name: str
    choices: tuple[FlagValue, ...]


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """Request to measure an arm at a level; level 0 is the shortest.

    The trial may stop early if it is far behind what `rival` reached at this level.
    """

    arm: Arm
    level: int
    rival: Arm | None = None

    @property
    def key(self) -> str:
        return f"{' | '.join(self.arm)} @ {self.level}"


@dataclass(frozen=True, slots=True)
class TuneEffort:
    """Effort of a search. `margin` and `slack` are shares of the best score.

    A candidate that is at most `slack` behind in a short trial gets a longer one.
    """

    levels: int = 2
    rounds: int = 2
    margin: float = 0.02
    slack: float = 0.05


class BaselineFailed(Exception):
    """vLLM's defaults could not be measured, so that there is nothing to compare with."""


Search = Generator[TrialRequest, float | None, Arm]
Score = Callable[[Arm, int, Arm | None], Generator[TrialRequest, float | None, float]]


def search(space: Sequence[FlagDimension], effort: TuneEffort) -> Search:
    """Yield trial requests, receive their scores (`None`: failed), and return the best arm.

    Raises `BaselineFailed` when the defaults have no score.
    """
    known: dict[tuple[Arm, int], float | None] = {}

    def score(
        arm: Arm, level: int, rival: Arm | None
    ) -> Generator[TrialRequest, float | None, float]:
        if (arm, level) not in known:
            known[arm, level] = yield TrialRequest(arm, level, rival)
        value = known[arm, level]
        return -math.inf if value is None else value

    best = defaults(space)
    for level in range(effort.levels):
        if (yield from score(best, level, None)) == -math.inf:
            raise BaselineFailed
    for _ in range(effort.rounds):
        before = best
        for place in range(len(space)):
            best = yield from _along(space, place, best, effort, score)
        if best == before:
            break
    return best


def _along(
    space: Sequence[FlagDimension], place: int, best: Arm, effort: TuneEffort, score: Score
) -> Search:
    """Yield trials along one dimension. Return its best arm."""
    left = [
        (*best[:place], choice.name, *best[place + 1 :])
        for choice in space[place].choices
        if choice.name != best[place]
    ]
    last = effort.levels - 1
    for level in range(effort.levels):
        rival = yield from score(best, level, None)
        scores: dict[Arm, float] = {}
        for arm in left:
            scores[arm] = yield from score(arm, level, best)
        asked = _above(rival, effort.margin if level == last else -effort.slack)
        good = sorted((arm for arm in left if scores[arm] > asked), key=lambda arm: -scores[arm])
        left = good[: 1 if level == last else math.ceil(len(left) / 2)]
    return left[0] if left else best


def _above(score: float, share: float) -> float:
    """Return a score that is better by a share. Scores of times are negative."""
    return score + abs(score) * share


def defaults(space: Sequence[FlagDimension]) -> Arm:
    return tuple(dimension.choices[0].name for dimension in space)


def choose_arm(space: Sequence[FlagDimension], choices: Mapping[str, str]) -> Arm:
    """Return the arm with these choices by dimension, and defaults for the others.

    Raises `ValueError` when a dimension or choice does not exist.
    """
    names = {dimension.name: [choice.name for choice in dimension.choices] for dimension in space}
    for name, choice in choices.items():
        if name not in names:
            raise ValueError(f"unknown dimension {name}; known are {', '.join(names)}")
        if choice not in names[name]:
            raise ValueError(f"{name} must be one of {', '.join(names[name])}; got {choice}")
    return tuple(choices.get(dimension.name, dimension.choices[0].name) for dimension in space)


def flags_of(space: Sequence[FlagDimension], arm: Arm) -> tuple[str, ...]:
    return tuple(flag for choice in _choices(space, arm) for flag in choice.flags)


def is_exact(space: Sequence[FlagDimension], arm: Arm) -> bool:
    return all(choice.exact for choice in _choices(space, arm))


def describe_arm(space: Sequence[FlagDimension], arm: Arm) -> Mapping[str, str]:
    """Return an arm's values that differ from vLLM's defaults."""
    pairs = zip(space, arm, strict=True)
    return {dimension.name: name for dimension, name in pairs if name != dimension.choices[0].name}


def _choices(space: Sequence[FlagDimension], arm: Arm) -> list[FlagValue]:
    return [
        next(choice for choice in dimension.choices if choice.name == name)
        for dimension, name in zip(space, arm, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class LoadPoint:
    """Throughput at one load (concurrent requests). `good` if it was inside the SLO."""

    load: int
    tokens_s: float
    good: bool


@dataclass(frozen=True, slots=True)
class LoadSearch:
    """Result of a load search. `stopped` if it was ended early as hopeless."""

    seen: tuple[LoadPoint, ...]
    stopped: bool = False

    @property
    def best(self) -> LoadPoint | None:
        good = [event for event in self.seen if event.good]
        return max(good, key=lambda point: point.tokens_s, default=None)


STEP = 1.5
HOPELESS = 0.85  # of the rival's throughput at the same load
GROWS = 1.02


def search_upwards(
    first: int,
    rival: Sequence[LoadPoint] = (),
    *,
    before: Sequence[LoadPoint] = (),
    most: int = 4096,
) -> Generator[int, LoadPoint, LoadSearch]:
    """Yield loads, receive their results, and return the search for the best load in the SLO.

    Loads are concurrent requests. From `first` they rise while throughput grows inside the SLO, or
    fall while it is missed; a last load lies between the best good and the lowest bad one. The
    search ends early if `rival` is far better at a load, or if a shorter trial (`before`) has
    already tried higher loads.
    """
    seen: list[LoadPoint] = []
    load = first
    while True:
        seen.append((yield load))
        theirs = [point.tokens_s for point in rival if point.load == load and point.good]
        if theirs and seen[-1].tokens_s < HOPELESS * theirs[0]:
            return LoadSearch(tuple(seen), stopped=True)
        good = [event.load for event in seen if event.good]
        bad = [event.load for event in seen if not event.good]
        if not good:
            load = int(load / STEP)  # 1 is the last load
            if load < 1:
                return LoadSearch(tuple(seen))
        elif bad:
            break
        else:
            by_load = sorted(seen, key=lambda event: event.load)
            grows = len(seen) < 2 or by_load[-1].tokens_s > GROWS * by_load[-2].tokens_s
            been = any(point.load > load for point in before)
            load = math.ceil(load * STEP)
            if not grows or been or load > most:
                return LoadSearch(tuple(seen))
    between = round(math.sqrt(max(good) * min(bad)))
    if between not in (max(good), min(bad)):
        seen.append((yield between))
    return LoadSearch(tuple(seen))


def search_each(loads: Sequence[int]) -> Generator[int, LoadPoint, LoadSearch]:
    """Yield each load, then lower ones while none is inside the SLO. Return the results."""
    seen: list[LoadPoint] = []
    left = list(loads)
    while left:
        seen.append((yield left.pop(0)))
        lower = int(min(event.load for event in seen) / STEP)
        if not left and lower >= 1 and not any(event.good for event in seen):
            left.append(lower)
    return LoadSearch(tuple(seen))
