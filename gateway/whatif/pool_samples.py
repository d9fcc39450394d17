"""KV usage, queue and bid price of each pool over a what-if: maxima per interval."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gateway.whatif.replay_engine import ReplayEngine
from router.bid_price import UNKNOWN_MARKET, BidPrice

SAMPLES = 240  # over the whole time


class PoolSample(NamedTuple):
    """Maxima of one pool over an interval of time."""

    at_s: float
    pool: str
    kv_ratio: float
    running: int
    waiting: int
    bid_price_pusd_per_s: float


class PoolSamples:
    """Samples by interval and pool in `found`; `pools` maps engine names to pools."""

    def __init__(self, seconds: float, pools: Mapping[str, str]) -> None:
        self._stretch_s = max(1.0, seconds / SAMPLES)
        self._pools = pools
        self.found: dict[tuple[int, str], PoolSample] = {}

    def add(
        self, now_s: float, seats: Sequence[ReplayEngine], markets: Mapping[str, BidPrice]
    ) -> None:
        place = int(now_s / self._stretch_s)
        for seat in seats:
            pool = self._pools[seat.name]
            engine, bid = seat.engine, markets.get(pool, UNKNOWN_MARKET).bid_price
            now = (engine.kv_usage_ratio, engine.running, engine.waiting, bid)
            known = self.found.get((place, pool))
            most = now if known is None else tuple(map(max, known[2:], now))
            self.found[place, pool] = PoolSample(place * self._stretch_s, pool, *most)
