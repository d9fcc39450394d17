"""Engine replicas of a pool in order: who starts each, its address, and its role.

Started replicas come first, then `endpoints`, then engines in roles, prefill before decode, each
with started ones first. A replica's number is its engine's name, so numbers of pools without roles
do not change.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:  # commands with cached settings import no schema
    from gateway.config.schema import PoolSection
    from gateway.config.schema_roles import EngineRoleSection

SeatRole = Literal["whole", "prefill", "decode"]
PREFILL_BUDGET = 8192  # of prefill engines, whose steps delay no decoding request


class PoolSeat(NamedTuple):
    """Engine replica of a pool.

    `url` is None if `serve` starts it. `budget_tokens` is None if the pool's value applies.
    `port_index` counts started replicas, `place` those of the same kind and role.
    """

    number: int
    role: SeatRole
    url: str | None
    port_index: int | None = None
    budget_tokens: int | None = None
    place: int = 0


def seats_of(pool: "PoolSection") -> list[PoolSeat]:
    """Return all engine replicas of the pool in order."""
    found = enumerate((*_whole(pool), *_apart(pool)))
    return [PoolSeat(number, *rest) for number, rest in found]


def started_count(pool: "PoolSection") -> int:
    """Return how many engines of the pool `serve` starts."""
    return pool.engine.replicas + (0 if pool.roles is None else pool.roles.started)


def seat_count(pool: "PoolSection") -> int:
    """Return the total number of the pool's engines."""
    whole = pool.engine.replicas + len(pool.engine.endpoints)
    return whole + (0 if pool.roles is None else pool.roles.count)


_Rest = tuple[SeatRole, str | None, int | None, int | None, int]


def _whole(pool: "PoolSection") -> Iterator[_Rest]:
    sizes = () if pool.roles is None else pool.roles.whole_budget_tokens
    for place in range(pool.engine.replicas):
        yield "whole", None, place, sizes[place] if place < len(sizes) else None, place
    for place, url in enumerate(pool.engine.endpoints):
        yield "whole", url, None, None, place


def _apart(pool: "PoolSection") -> Iterator[_Rest]:
    if pool.roles is None:
        return
    first = pool.engine.replicas
    yield from _of_role("prefill", pool.roles.prefill, first, PREFILL_BUDGET)
    first += pool.roles.prefill.replicas
    yield from _of_role("decode", pool.roles.decode, first, None)


def _of_role(
    role: SeatRole, section: "EngineRoleSection", first: int, usual: int | None
) -> Iterator[_Rest]:
    budget = section.prefill_budget_tokens or usual
    for place in range(section.replicas):
        yield role, None, first + place, budget, place
    for place, url in enumerate(section.endpoints):
        yield role, url, None, budget, place
