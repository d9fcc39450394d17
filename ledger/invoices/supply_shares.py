"""Sharing of bills among demands, so that as much as possible of each kind is met.

Money is pico-USD. Demands come in stages; a later stage takes nothing from an earlier one. Each
demand first draws on its most likely pools, in proportion if a pool is short. Then a demand that
lacks something takes what another one can draw elsewhere (augmenting paths, Ford and Fulkerson
1956), so that no pool keeps an amount that a demand of the stage can explain. This module does no
I/O.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, pairwise

DemandGroup = tuple[int, int, str]  # stage, day and model
Pool = tuple[int, int, str]  # first and last day, and model, of a stretch that a bill states
Tiers = Sequence[Sequence[Pool]]  # pools that a demand may draw on, most likely first
MayMove = Callable[[DemandGroup, Pool], bool]
_Steps = list[tuple[DemandGroup, Pool]]


class SupplyShares:
    """The rest of each pool, and the draws of each demand."""

    def __init__(self, supplies: Mapping[Pool, int]) -> None:
        self._spare = dict(supplies)
        self._drawn: dict[Pool, dict[DemandGroup, int]] = {}
        self._pools: dict[DemandGroup, Sequence[Pool]] = {}

    def share(
        self,
        demands: Mapping[DemandGroup, int],
        tiers: Mapping[DemandGroup, Tiers],
        may_move: MayMove,
    ) -> dict[DemandGroup, int]:
        """Return what each demand of a stage gets, at most its amount.

        All demands draw on one tier before any draws on the next. `may_move` tells which draws,
        also of earlier stages, may move to another pool.
        """
        self._pools.update((group, list(chain.from_iterable(of))) for group, of in tiers.items())
        lacks = dict(demands)
        for number in range(max((len(of) for of in tiers.values()), default=0)):
            of_tier = {group: of[number] for group, of in tiers.items() if number < len(of)}
            for rank in range(max((len(pools) for pools in of_tier.values()), default=0)):
                self._draw(rank, of_tier, lacks)
        closed: set[DemandGroup] = set()  # no path leads from these to a pool with a rest
        for group in sorted(demands):
            while lacks[group] > 0:
                path = self._find_path(group, may_move, closed)
                if path is None:
                    break
                self._move(path, lacks)
        return {group: demands[group] - lacks[group] for group in demands}

    def _draw(
        self,
        rank: int,
        pools: Mapping[DemandGroup, Sequence[Pool]],
        lacks: dict[DemandGroup, int],
    ) -> None:
        """Let each demand draw on its pool of this rank."""
        asking: dict[Pool, list[DemandGroup]] = {}
        for group, of in sorted(pools.items()):
            if rank < len(of) and lacks[group] > 0 and self._spare.get(of[rank], 0) > 0:
                asking.setdefault(of[rank], []).append(group)
        for pool, groups in asking.items():
            total = sum(lacks[group] for group in groups)
            given = min(total, self._spare[pool])
            for group in groups:
                part = lacks[group] * given // total
                self._add(group, pool, part)
                lacks[group] -= part
                self._spare[pool] -= part

    def _find_path(
        self, start: DemandGroup, may_move: MayMove, closed: set[DemandGroup]
    ) -> _Steps | None:
        """Return steps (demand, its new pool) to a pool with a rest, `None` without a path."""
        origin: dict[DemandGroup, tuple[DemandGroup, Pool] | None] = {start: None}
        waiting = deque([start])
        while waiting:
            group = waiting.popleft()
            if group in closed:
                continue
            for pool in self._pools[group]:
                if self._spare.get(pool, 0) > 0:
                    return _steps(origin, group, pool)
                for other, pusd in self._drawn.get(pool, {}).items():
                    if pusd > 0 and other not in origin and may_move(other, pool):
                        origin[other] = group, pool
                        waiting.append(other)
        closed.update(origin)
        return None

    def _move(self, path: _Steps, lacks: dict[DemandGroup, int]) -> None:
        """Draw the maximum amount that every step of the path allows."""
        freed = [(group, before) for (_, before), (group, _) in pairwise(path)]
        most = min(
            lacks[path[0][0]],
            self._spare[path[-1][1]],
            *(self._drawn[pool][group] for group, pool in freed),
        )
        for group, pool in freed:
            self._add(group, pool, -most)
        for group, pool in path:
            self._add(group, pool, most)
        lacks[path[0][0]] -= most
        self._spare[path[-1][1]] -= most

    def _add(self, group: DemandGroup, pool: Pool, pusd: int) -> None:
        drawn = self._drawn.setdefault(pool, {})
        drawn[group] = drawn.get(group, 0) + pusd


def _steps(
    origin: Mapping[DemandGroup, tuple[DemandGroup, Pool] | None], group: DemandGroup, pool: Pool
) -> _Steps:
    steps = [(group, pool)]
    while (before := origin[steps[-1][0]]) is not None:
        steps.append(before)
    return steps[::-1]
