"""Order in which LiteLLM's router tries models after errors, compared with that of stages.

Pure, after LiteLLM 1.106. After a failed model come its later orders, then its own fallbacks, or
those of the first model if it has none. No name is tried twice, and `max_fallbacks` limits the
depth.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

FAILURE, CONTEXT, CONTENT_POLICY = "failure", "context", "content_policy"
CAUSES = (FAILURE, CONTEXT, CONTENT_POLICY)
EVERY = "*"
USUAL_DEPTH = 5
PATHS_LIMIT = 2_000

FallbackTable = Mapping[str, Sequence[str]]


class AskedGroup(NamedTuple):
    """Deployments of a model with one `order`; `level` counts from 0."""

    model: str
    level: int = 0


class WalkStage(NamedTuple):
    """A stage: the errors that it waits for, and the groups that it tries."""

    causes: frozenset[str]
    asked: AskedGroup


@dataclass(frozen=True, slots=True)
class FallbackWalk:
    """Model of LiteLLM's router. `levels`: number of orders per model; 0: unknown model.

    `tables`: fallbacks by cause and model; a cause without any uses those of `FAILURE`.
    """

    levels: Callable[[str], int]
    tables: Mapping[str, FallbackTable]
    depth: int = USUAL_DEPTH

    def asks(self, model: str, errors: Sequence[str], rest: str = FAILURE) -> list[AskedGroup]:
        """Return the groups that are tried for these `errors` in order, and `rest` after them."""
        run = _Run(self, model, errors, rest)
        run.hop(AskedGroup(model), 0)
        return run.asked

    def follows(self, model: str, first: str, cause: str) -> Sequence[str]:
        """Return the fallbacks of a failed model; `first` is the model of the request."""
        table = self.tables.get(cause) or (self.tables.get(FAILURE, {}) if cause != FAILURE else {})
        for name in (model, first, EVERY):
            if name in table:
                return table[name]
        return ()

    def is_plain(self, models: Sequence[str]) -> bool:
        """Return whether all causes have the same fallbacks for these models."""
        return not any(self.tables.get(cause) for cause in CAUSES[1:]) and all(
            self.levels(model) < 2 for model in models
        )


@dataclass(slots=True)
class _Run:
    walk: FallbackWalk
    first: str
    errors: Sequence[str]
    rest: str
    asked: list[AskedGroup] = field(default_factory=list)
    tried: set[str | AskedGroup] = field(default_factory=set)

    def hop(self, group: AskedGroup, depth: int) -> None:
        """Try a group, which fails, and then all groups that follow."""
        number = len(self.asked)
        cause = self.errors[number] if number < len(self.errors) else self.rest
        self.asked.append(group)
        if depth >= self.walk.depth:
            return
        self.tried.add(group.model)
        orders = range(group.level + 1, self.walk.levels(group.model)) if cause == FAILURE else ()
        named = self.walk.follows(group.model, self.first, cause)
        nexts: list[str | AskedGroup] = [AskedGroup(group.model, level) for level in orders]
        for follower in [*nexts, *named]:
            if follower in self.tried:
                continue
            self.tried.add(follower)
            depth += 1
            if isinstance(follower, AskedGroup):
                self.hop(follower, depth)
            elif self.walk.levels(follower):
                self.hop(AskedGroup(follower), depth)


def staged_asks(
    model: str, stages: Sequence[WalkStage], errors: Mapping[AskedGroup, str]
) -> list[AskedGroup]:
    """Return the groups that stages try: each stage whose cause occurred, no group twice.

    `errors` are the errors by group; a group without one fails.
    """
    asked = [AskedGroup(model)]
    causes = {errors.get(asked[0], FAILURE)}
    for stage in stages:
        if stage.causes & causes and stage.asked not in asked:
            asked.append(stage.asked)
            causes.add(errors.get(stage.asked, FAILURE))
    return asked


def plan_stages(walk: FallbackWalk, model: str) -> tuple[list[WalkStage], list[str]]:
    """Return stages equivalent to LiteLLM's fallbacks, and the errors for which they differ.

    They are equivalent if all targets fail for the same cause. With mixed causes, LiteLLM's order
    may not be expressible in stages: then the second part is one such sequence of errors.
    """
    ways = {cause: walk.asks(model, (), cause)[1:] for cause in CAUSES}
    shared, apart = _merge(ways)
    reached = dict.fromkeys([model, *(group.model for way in ways.values() for group in way)])
    for stages in ([*apart, *shared], [*apart, *shared, *apart]):
        differing = _first_difference(walk, model, stages, plain=walk.is_plain([*reached]))
        if differing is None:
            return stages, []
    return [*apart, *shared], differing or []


def _merge(
    ways: Mapping[str, Sequence[AskedGroup]],
) -> tuple[list[WalkStage], list[WalkStage]]:
    """Return one list for all causes compatible with that of failures, and separate lists."""
    base = [({FAILURE}, group) for group in ways[FAILURE]]
    apart: list[WalkStage] = []
    for cause in CAUSES[1:]:
        way = iter(base)
        fitting = [
            next((causes for causes, group in way if group == wanted), None)
            for wanted in ways[cause]
        ]
        if None in fitting:
            apart += [WalkStage(frozenset({cause}), group) for group in ways[cause]]
            continue
        for causes in fitting:
            if causes is not None:
                causes.add(cause)
    return [WalkStage(frozenset(causes), group) for causes, group in base], apart


def _first_difference(
    walk: FallbackWalk, model: str, stages: Sequence[WalkStage], *, plain: bool
) -> list[str] | None:
    """Return a sequence of errors for which both differ; None if none was found."""
    if plain:
        return None
    for theirs, causes in _paths(walk, model):
        ours = staged_asks(model, stages, dict(zip(theirs, causes, strict=True)))
        if list(dict.fromkeys(theirs)) != ours:
            return [f"{group.model}: {cause}" for group, cause in zip(theirs, causes, strict=True)]
    return None


def _paths(walk: FallbackWalk, model: str) -> Iterator[tuple[list[AskedGroup], list[str]]]:
    """Yield LiteLLM's orders for all errors of its targets, up to `PATHS_LIMIT`."""
    waiting: list[list[str]] = [[]]
    for _ in range(PATHS_LIMIT):
        if not waiting:
            return
        stated = waiting.pop()
        asked = walk.asks(model, stated)
        causes = [*stated, *[FAILURE] * (len(asked) - len(stated))]
        yield asked, causes
        waiting += [
            [*causes[:place], cause]
            for place in range(len(stated), len(asked))
            for cause in CAUSES[1:]
        ]
