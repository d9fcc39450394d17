"""Several pools on one set of GPUs: whose model is resident, with what a swap costs.

Each pool bids what its k-th engine is expected to earn an hour. An engine that is not resident
pays for its swap out of the time it will be kept (a load, or waking a sleeping engine). Needs come
first, then the dearest engines for each GPU, so a resident engine leaves only for one that earns
its swap as well. Where all engines take equally many GPUs nothing earns more than this choice.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PoolBid:
    """What a pool's engines earn, by place, in pico-USD an hour beyond what they cost.

    `values` do not rise. `need` engines are what may not be missing: internal-only traffic and its
    spare. `swap_pusd` is what making one engine resident costs, lost time included.
    """

    pool: str
    gpus: int
    resident: int
    need: int
    values: tuple[int, ...]
    swap_pusd: int = 0


@dataclass(frozen=True, slots=True)
class GpuShare:
    """Engines of a pool on the shared GPUs; `short` of those that it needs had no room."""

    pool: str
    engines: int
    short: int


def share_gpus(bids: Sequence[PoolBid], gpus: int, kept_hours: float) -> tuple[GpuShare, ...]:
    """Share GPUs among pools. A swap must be earned within `kept_hours`, the horizon of plans."""
    if kept_hours <= 0:
        raise ValueError("kept_hours must be above zero")
    left, engines = gpus, {bid.pool: 0 for bid in bids}
    for bid in sorted(bids, key=lambda bid: bid.pool):
        engines[bid.pool] = min(bid.need, left // bid.gpus)
        left -= engines[bid.pool] * bid.gpus
    while True:
        offers = [
            (_earned(bid, engines[bid.pool], kept_hours) / bid.gpus, bid)
            for bid in bids
            if bid.gpus <= left and engines[bid.pool] < len(bid.values)
        ]
        paying = [offer for offer in offers if offer[0] > 0]
        if not paying:
            break
        _, chosen = min(paying, key=lambda offer: (-offer[0], offer[1].pool))
        engines[chosen.pool] += 1
        left -= chosen.gpus
    return tuple(
        GpuShare(bid.pool, engines[bid.pool], max(0, bid.need - engines[bid.pool])) for bid in bids
    )


def _earned(bid: PoolBid, place: int, kept_hours: float) -> float:
    """What the engine after `place` earns an hour, less its swap where it is not resident."""
    swap = 0 if place < bid.resident else bid.swap_pusd
    return bid.values[place] - swap / kept_hours
