"""Share what bills have among groups of claims so that as much as possible is owed by somebody.

Pure; money is in pico-USD. Each group draws on its likeliest pool first, in proportion where the
pool is short. Then a group that lacks something takes what another one can draw elsewhere
(augmenting paths, Ford and Fulkerson 1956), so that nothing is left over that a claim may explain.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise

ClaimGroup = tuple[int, str]  # day and model
Pool = tuple[int, str]  # a period's place and a model

_Flow = dict[ClaimGroup, dict[Pool, int]]


def share_supplies(
    demands: Mapping[ClaimGroup, int],
    supplies: Mapping[Pool, int],
    pools: Mapping[ClaimGroup, Sequence[Pool]],
) -> dict[ClaimGroup, int]:
    """Return what each group gets: its demand at most, and of each pool its supply at most."""
    spare = dict(supplies)
    lacks = dict(demands)
    flow: _Flow = {group: {} for group in demands}
    for rank in range(max((len(of) for of in pools.values()), default=0)):
        _draw(rank, pools, spare, lacks, flow)
    for group in sorted(demands):
        while lacks[group] > 0:
            path = _find_path(group, pools, spare, flow)
            if path is None:
                break
            _move(path, spare, lacks, flow)
    return {group: demands[group] - lacks[group] for group in demands}


def _draw(
    rank: int,
    pools: Mapping[ClaimGroup, Sequence[Pool]],
    spare: dict[Pool, int],
    lacks: dict[ClaimGroup, int],
    flow: _Flow,
) -> None:
    """Let each group draw on its pool of this rank."""
    asking: dict[Pool, list[ClaimGroup]] = {}
    for group, of in sorted(pools.items()):
        if rank < len(of) and lacks[group] > 0:
            asking.setdefault(of[rank], []).append(group)
    for pool, groups in asking.items():
        total = sum(lacks[group] for group in groups)
        given = min(total, spare.get(pool, 0))
        for group in groups if given else ():
            part = lacks[group] * given // total
            flow[group][pool] = flow[group].get(pool, 0) + part
        for group in groups if given else ():
            part = lacks[group] * given // total
            lacks[group] -= part
            spare[pool] -= part


def _find_path(
    start: ClaimGroup,
    pools: Mapping[ClaimGroup, Sequence[Pool]],
    spare: Mapping[Pool, int],
    flow: _Flow,
) -> list[tuple[ClaimGroup, Pool]] | None:
    """Return steps (group, pool that it draws on then) up to a pool that has something left."""
    paths: dict[ClaimGroup, list[tuple[ClaimGroup, Pool]]] = {start: []}
    drawing: dict[Pool, list[ClaimGroup]] = {}
    for group, drawn in flow.items():
        for pool, pusd in drawn.items():
            if pusd > 0:
                drawing.setdefault(pool, []).append(group)
    waiting = deque([start])
    while waiting:
        group = waiting.popleft()
        for pool in pools[group]:
            path = [*paths[group], (group, pool)]
            if spare.get(pool, 0) > 0:
                return path
            for other in drawing.get(pool, ()):
                if other not in paths:
                    paths[other] = path
                    waiting.append(other)
    return None


def _move(
    path: Sequence[tuple[ClaimGroup, Pool]],
    spare: dict[Pool, int],
    lacks: dict[ClaimGroup, int],
    flow: _Flow,
) -> None:
    """Draw as much as every step of the path allows."""
    freed = [(group, before) for (_, before), (group, _) in pairwise(path)]
    most = min(lacks[path[0][0]], spare[path[-1][1]], *(flow[group][pool] for group, pool in freed))
    for group, pool in freed:
        flow[group][pool] -= most
    for group, pool in path:
        flow[group][pool] = flow[group].get(pool, 0) + most
    lacks[path[0][0]] -= most
    spare[path[-1][1]] -= most
