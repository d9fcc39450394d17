"""Engines that would exist if the advice had been followed: started, serving, stopped.

Advice is scored as if it had been followed, so the next plan continues from these engines.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ledger.economics.scaling_score import InstanceRent
from router.scaling.plan import EngineLease


@dataclass(frozen=True, slots=True)
class AdvisedEngine:
    """Engine of the advice. `gone_us` is the end of its rent, once the advice ended it.

    `drains_us` is how long before that it received no more requests.
    """

    token: str
    asked_us: int
    ready_us: int
    gone_us: int | None = None
    drains_us: int = 0

    def serves(self, start_us: int, end_us: int) -> bool:
        """Return whether it would have served during the whole span."""
        is_there = self.gone_us is None or self.gone_us - self.drains_us >= end_us
        return self.ready_us <= start_us and is_there

    def rent_pusd(self, rent: InstanceRent, start_us: int, end_us: int) -> int:
        """Return the rent that would have become due in a span, in pico-USD."""
        until_us = end_us if self.gone_us is None else min(end_us, self.gone_us)
        return max(0, rent.part_pusd(self.asked_us, start_us, until_us))


def begin(count: int, now_us: int) -> list[AdvisedEngine]:
    """Return the fleet at the start of the advice: these engines already serve."""
    return [AdvisedEngine(f"advised.{number}", now_us, now_us) for number in range(count)]


def follow(
    engines: Sequence[AdvisedEngine],
    wanted: int,
    stop: Iterable[str],
    *,
    now_us: int,
    start_us: int,
    drain_us: int = 0,
) -> list[AdvisedEngine]:
    """Return the fleet after a plan; ended engines are kept until they are scored.

    Engines that stop cost rent for `drain_us` more.
    """
    named = {token: number for number, token in enumerate(stop)}
    live = [engine for engine in engines if engine.gone_us is None]
    order = sorted(live, key=lambda engine: (named.get(engine.token, len(named)), -engine.asked_us))
    ending = {engine.token for engine in order[: max(0, len(live) - wanted)]}
    kept = [
        replace(engine, gone_us=now_us + drain_us, drains_us=drain_us)
        if engine.token in ending
        else engine
        for engine in engines
    ]
    begun = [
        AdvisedEngine(f"advised.{now_us}.{number}", now_us, now_us + start_us)
        for number in range(max(0, wanted - len(live)))
    ]
    return kept + begun


def forget_scored(engines: Iterable[AdvisedEngine], through_us: int) -> list[AdvisedEngine]:
    """Return the engines that later spans still need."""
    return [engine for engine in engines if engine.gone_us is None or engine.gone_us > through_us]


def leases(engines: Iterable[AdvisedEngine]) -> tuple[EngineLease, ...]:
    """Return the running engines in the planner's format."""
    return tuple(
        EngineLease(engine.token, engine.asked_us, engine.ready_us)
        for engine in engines
        if engine.gone_us is None
    )


def stored(engines: Iterable[AdvisedEngine]) -> list[dict[str, Any]]:
    """Return the engines as JSON."""
    return [asdict(engine) for engine in engines]


def restored(documents: Iterable[dict[str, Any]]) -> list[AdvisedEngine]:
    """Return the engines from the JSON of `stored`."""
    return [AdvisedEngine(**document) for document in documents]
