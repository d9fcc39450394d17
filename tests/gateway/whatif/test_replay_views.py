"""Decisions in a what-if see APIs as they answered, and engines in their pool's market."""

from gateway.whatif.policy_replay import PolicyReplay
from gateway.whatif.replay_views import ReplayViews
from router.bid_price import UNKNOWN_MARKET, BidPrice
from router.estimates import LatencyTracker


def test_an_api_is_seen_as_it_answered_once_that_is_learned(house) -> None:
    views, tracker = ReplayViews(house.runtime, {}), LatencyTracker()
    row = house.runtime.apis.index("openai/mini")
    before = views.api(row).snapshot(0.0, 0)
    for _ in range(50):
        tracker.observe(("openai/mini",), ttft_ms=900.0, tpot_ms=9.0)
    assert views.api(row).snapshot(0.0, 0) is before
    views.learn(tracker)
    seen = views.api(row).snapshot(0.0, 0)
    assert (before.observations, seen.observations) == (0, 50)
    assert (before.ttft_median_ms, round(seen.ttft_median_ms)) == (None, 900)


def test_an_engine_is_seen_in_the_market_of_its_pool(house, under) -> None:
    seats = {seat.name: seat for seat in PolicyReplay(house, under("tight"), 1.0).seats}
    views = ReplayViews(house.runtime, seats)
    assert views.engine(0).snapshot(0.0)[2] == UNKNOWN_MARKET
    views.markets["chat"] = BidPrice(3.0, 5.0, 2.0, 250.0)
    state, context, market = views.engine(0).snapshot(0.0)
    assert (market.bid_price, state.tightest_ttft_ms) == (3.0, 250.0)
    assert context == house.engines["chat"].shape.context_tokens
