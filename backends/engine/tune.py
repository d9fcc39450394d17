"""Which flags to try next: coordinate descent whose candidates are halved as they are looked at.

Pure: arms out, scores in (more is better), so that a log of answers replays a search to where it
stopped. One dimension after the other, the other choices staying as the best arm so far has them;
its candidates are measured shortly, those that may still win longer, until the last level decides.
A candidate takes the place of the best only when it is better by more than `margin`: what noise
could do must not change a flag. Rounds over all dimensions end when one brings nothing.
"""

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass

Arm = tuple[str, ...]  # the name of one choice in each dimension


@dataclass(frozen=True, slots=True)
class FlagValue:
    """`exact`: the same model, number for number; others are for `engine eval` to judge."""

    name: str
    flags: tuple[str, ...] = ()
    exact: bool = True


@dataclass(frozen=True, slots=True)
class FlagDimension:
    """The first choice is vLLM's own default, without a flag."""

    name: str
    choices: tuple[FlagValue, ...]


@dataclass(frozen=True, slots=True)
class TrialRequest:
    """Measure this arm at a level (0 is the shortest); stop early by what `rival` reached there."""

    arm: Arm
    level: int
    rival: Arm | None = None

    @property
    def key(self) -> str:
        return f"{' | '.join(self.arm)} @ {self.level}"


@dataclass(frozen=True, slots=True)
class TuneEffort:
    """`slack`: how far behind at a short look a candidate may be that still gets a longer one."""

    levels: int = 2
    rounds: int = 2
    margin: float = 0.02
    slack: float = 0.05


class BaselineFailed(Exception):
    """vLLM's defaults themselves could not be measured: there is nothing to compare with."""


Search = Generator[TrialRequest, float | None, Arm]
Score = Callable[[Arm, int, Arm | None], Generator[TrialRequest, float | None, float]]


def search(space: Sequence[FlagDimension], effort: TuneEffort) -> Search:
    """Yields what to measure, is sent its score (`None`: failed); returns the best arm."""
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
    """Yield the best arm along one dimension."""
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
    """Better by that share; scores may be negative, as those of times are."""
    return score + abs(score) * share


def defaults(space: Sequence[FlagDimension]) -> Arm:
    return tuple(dimension.choices[0].name for dimension in space)


def choose_arm(space: Sequence[FlagDimension], choices: Mapping[str, str]) -> Arm:
    """The arm with these choices by dimension; raises `ValueError` at one that is not there."""
    names = {dimension.name: [choice.name for choice in dimension.choices] for dimension in space}
    for name, choice in choices.items():
        if name not in names:
            raise ValueError(f"no dimension is named {name}; there are {', '.join(names)}")
        if choice not in names[name]:
            raise ValueError(f"{name} is one of {', '.join(names[name])}, not {choice}")
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
    """One load on one server: `good` when it kept the promise."""

    load: int
    tokens_s: float
    good: bool


@dataclass(frozen=True, slots=True)
class LoadSearch:
    """The result of a search for the best load; `stopped` when it was hopeless."""

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
    """Yields requests at once, is sent what came of them: the most throughput within a promise.

    From `first` upwards while it grows and the promise holds, downwards while it does not, then
    once between the last good and the first bad. Early over where the rival is far better, and
    where a shorter look (`before`) has already been above `first` and come back.
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
            load = int(load / STEP)  # down to none: 1 is the last
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
    """Yields each load, and lower ones where the promise holds at none of them."""
    seen: list[LoadPoint] = []
    left = list(loads)
    while left:
        seen.append((yield left.pop(0)))
        lower = int(min(event.load for event in seen) / STEP)
        if not left and lower >= 1 and not any(event.good for event in seen):
            left.append(lower)
    return LoadSearch(tuple(seen))
