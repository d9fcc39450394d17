"""Which of the router's words say something about capacity."""

from ledger.fleet.overflow import LACK_OF_CAPACITY
from router.reasons import REASONS, Overflow


def test_it_is_what_the_router_says_of_each_reason() -> None:
    lacking = {
        reason.value
        for reason, traits in REASONS.items()
        if traits.overflow is Overflow.LACK_OF_CAPACITY
    }
    assert lacking == LACK_OF_CAPACITY


def test_an_engine_that_is_away_lacks_no_capacity() -> None:
    assert not LACK_OF_CAPACITY & {"unhealthy", "loading", "draining", "unknown_state"}
    assert {"kv_headroom", "ttft", "tpot", "bid_price"} < LACK_OF_CAPACITY
