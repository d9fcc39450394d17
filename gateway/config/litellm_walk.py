"""Which models LiteLLM's router asks after which errors, and which ones stages of ours would ask.

Pure, after `async_function_with_fallbacks` and `run_async_fallback` of LiteLLM 1.106. A model that
failed is followed by its later orders and its own fallbacks; where it has none, by those of the
model that was asked first. No name is asked twice, and at `max_fallbacks` nobody goes deeper.
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
    """A model's deployments of one `order`; `level` counts from 0."""

    model: str
    level: int = 0


class WalkStage(NamedTuple):
    """A stage of ours: which errors it waits for, and whom it asks."""

    causes: frozenset[str]
    asked: AskedGroup


@dataclass(frozen=True, slots=True)
class FallbackWalk:
    """LiteLLM's router. `levels`: how many orders a model has; 0: no such model.

    `tables`: by cause, whom a model falls back to; a cause without any is served by `FAILURE`'s.
    """

    levels: Callable[[str], int]
    tables: Mapping[str, FallbackTable]
    depth: int = USUAL_DEPTH

    def asks(self, model: str, errors: Sequence[str], rest: str = FAILURE) -> list[AskedGroup]:
        """Return whom it asks, where answers are these `errors` in order, and `rest` from then."""
        run = _Run(self, model, errors, rest)
        run.hop(AskedGroup(model), 0)
        return run.asked

    def follows(self, model: str, first: str, cause: str) -> Sequence[str]:
        """Return the fallbacks of a model that failed, `first` being what was asked for."""
        table = self.tables.get(cause) or (self.tables.get(FAILURE, {}) if cause != FAILURE else {})
        for name in (model, first, EVERY):
            if name in table:
                return table[name]
        return ()

    def is_plain(self, models: Sequence[str]) -> bool:
        """Whether all causes lead the same way for these models."""
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
        """Ask a group; it fails, so whoever follows it is asked as well."""
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
    """Return whom stages of ours ask: each later one whose cause was seen, no group twice.

    `errors`: what a group answers; a failure where it is not in it.
    """
    asked = [AskedGroup(model)]
    causes = {errors.get(asked[0], FAILURE)}
    for stage in stages:
        if stage.causes & causes and stage.asked not in asked:
            asked.append(stage.asked)
            causes.add(errors.get(stage.asked, FAILURE))
    return asked


def plan_stages(walk: FallbackWalk, model: str) -> tuple[list[WalkStage], list[str]]:
    """Return stages that ask as LiteLLM does, and where they cannot, for which errors.

    Where every target fails for one cause they always do. Where causes are mixed an order may be
    needed that no list of stages has: then the second part says one of those, error by error.
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
    """Return one list for all causes that fit into the way of failures, and lists of others."""
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
    """Return the errors, in order, for which both ask others; None: for none that was tried."""
    if plain:
        return None
    for theirs, causes in _paths(walk, model):
        ours = staged_asks(model, stages, dict(zip(theirs, causes, strict=True)))
        if list(dict.fromkeys(theirs)) != ours:
            return [f"{group.model}: {cause}" for group, cause in zip(theirs, causes, strict=True)]
    return None


def _paths(walk: FallbackWalk, model: str) -> Iterator[tuple[list[AskedGroup], list[str]]]:
    """Yield LiteLLM's ways for all errors that its targets may have, up to `PATHS_LIMIT`."""
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
