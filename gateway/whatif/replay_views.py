"""Target views for decisions of a what-if, in virtual time."""

from collections.abc import Mapping
from dataclasses import replace

from gateway.fleet.target_views import ApiView, EngineView
from gateway.runtime import Runtime
from gateway.whatif.replay_engine import ReplayEngine
from router.bid_price import UNKNOWN_MARKET, BidPrice
from router.estimates import LatencyTracker
from router.types import ApiState, EngineState


class ReplayViews:
    """Targets by row; `markets` by pool is updated by the replay."""

    def __init__(self, runtime: Runtime, seats: Mapping[str, ReplayEngine]) -> None:
        self._engines, self._seats = runtime.engines, seats
        self._apis = [_Api(name) for name in runtime.apis]
        self.markets: dict[str, BidPrice] = {}

    def engine(self, row: int) -> EngineView:
        replica = self._engines[row]
        return _Own(self.markets, self._seats[replica.name], replica.pool)

    def api(self, row: int) -> ApiView:
        return self._apis[row]

    def held_off_s(self, _row: int, _model: str, _now_s: float, /) -> float:
        return 0.0  # no provider refuses in virtual time

    def learn(self, tracker: LatencyTracker) -> None:
        """Update the APIs with observed latencies."""
        for api in self._apis:
            api.learn(tracker)


class _Own:
    """An own engine, as known from the gateway's own events."""

    def __init__(self, markets: Mapping[str, BidPrice], seat: ReplayEngine, pool: str) -> None:
        self._markets, self._seat, self._pool = markets, seat, pool

    def snapshot(self, now_s: float) -> tuple[EngineState, int, BidPrice]:
        seat, market = self._seat, self._markets.get(self._pool, UNKNOWN_MARKET)
        state = seat.state(now_s, tightest_ttft_ms=market.tightest_ttft_ms)
        return state, seat.shape.context_tokens, market


class _Api:
    """An API, with observed latencies."""

    def __init__(self, name: str) -> None:
        self._key = (name,)
        self._state = ApiState()
        self._known = 0

    def snapshot(self, _now_s: float, _needed_tokens: int) -> ApiState:
        return self._state

    def learn(self, tracker: LatencyTracker) -> None:
        seen = tracker.observations(self._key)
        if seen == self._known:
            return
        self._known = seen
        (ttft, ttft_sigma), (tpot, tpot_sigma) = tracker.ttft(self._key), tracker.tpot(self._key)
        self._state = replace(
            self._state, ttft_median_ms=ttft, ttft_sigma=ttft_sigma, tpot_median_ms=tpot,
            tpot_sigma=tpot_sigma, observations=seen,
        )  # fmt: skip
