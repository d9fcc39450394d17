"""Check of the engines' flags against the vLLM that is installed for them.

Flags differ between releases, and only the installation knows which exist. The start of an engine
makes the same check (`backends.engine.flags`).
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from backends.engine import tuned
from backends.engine.environment import Environment, vllm_version
from backends.engine.flags import BadFlags, known_flags, unknown_flags
from backends.engines import ENGINE_KINDS
from gateway.config.faults import Place
from gateway.config.pool_seats import started_count
from gateway.config.schema import EngineSection, PoolSection, Settings


class FlagVerdict(NamedTuple):
    """Faults by place (`wrong`), and a line for each pool that was not checked (`notes`)."""

    wrong: dict[Place, str]
    notes: tuple[str, ...]


def judge_flags(
    settings: Settings, ask: Callable[[Environment], frozenset[str]] = known_flags
) -> FlagVerdict:
    """Check the flags of every pool. Blocking: the first call of a vLLM takes seconds."""
    wrong: dict[Place, str] = {}
    notes: list[str] = []
    for name, pool in settings.pools.items():
        given = dict(_flag_sets(pool.engine)) if _is_started(pool) else {}
        if not any(given.values()):
            continue
        place = Path(pool.engine.environment or settings.state / "engine").resolve()
        try:
            known = _known_flags_of(Environment(place), ask)
        except BadFlags as error:
            first = " ".join(str(error).split())[:200]
            notes.append(f"pools.{name}.engine.flags were not checked: {first}")
            continue
        for field, flags in given.items():
            if words := unknown_flags(flags, known):
                wrong["pools", name, "engine", field] = "; ".join(words)
    return FlagVerdict(wrong, tuple(notes))


def _is_started(pool: PoolSection) -> bool:
    return ENGINE_KINDS[pool.engine.kind].program is not None and bool(started_count(pool))


def _known_flags_of(
    environment: Environment, ask: Callable[[Environment], frozenset[str]]
) -> frozenset[str]:
    if vllm_version(environment) is None:
        place = environment.directory
        raise BadFlags(f"there is no vLLM in {place}; `breakeven engine install` puts one there")
    return ask(environment)


def _flag_sets(engine: EngineSection) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the configured flags and those of the profile, with the setting they come from."""
    yield "flags", engine.flags
    if engine.profile is not None:
        try:
            yield "profile", tuned.read(Path(engine.profile)).flags
        except tuned.ProfileError:  # reported by the check of the profile
            return
