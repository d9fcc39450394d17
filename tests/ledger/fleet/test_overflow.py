"""Every word of the router says exactly one thing about capacity."""

from ledger.fleet.overflow import AWAY, BY_CHOICE, CANNOT_SERVE, LACK_OF_CAPACITY
from router.types import Reason

GROUPS = (LACK_OF_CAPACITY, AWAY, CANNOT_SERVE, BY_CHOICE)


def test_each_reason_of_the_router_is_in_one_group() -> None:
    words = [word for group in GROUPS for word in group]
    assert sorted(words) == sorted(reason.value for reason in Reason)


def test_an_engine_that_is_away_lacks_no_capacity() -> None:
    assert not LACK_OF_CAPACITY & {"unhealthy", "loading", "draining", "unknown_state"}
    assert {"kv_headroom", "ttft", "tpot", "bid_price"} < LACK_OF_CAPACITY
