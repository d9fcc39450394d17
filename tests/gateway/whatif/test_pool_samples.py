"""The highest KV, queue and price of each stretch of a what-if."""

from types import SimpleNamespace

from gateway.whatif.pool_samples import SAMPLES, PoolSamples
from router.bid_price import UNKNOWN_MARKET


def seat(name: str, kv: float, running: int, waiting: int) -> SimpleNamespace:
    engine = SimpleNamespace(kv_usage_ratio=kv, running=running, waiting=waiting)
    return SimpleNamespace(name=name, engine=engine)


def test_a_stretch_has_the_highest_of_each() -> None:
    samples = PoolSamples(2.0 * SAMPLES, {"a/0": "a", "a/1": "a", "b/0": "b"})
    market = UNKNOWN_MARKET._replace(bid_price=7.0)
    samples.add(0.1, [seat("a/0", 0.2, 5, 0), seat("a/1", 0.4, 1, 3), seat("b/0", 0.9, 1, 1)], {})
    samples.add(1.9, [seat("a/0", 0.1, 9, 0), seat("a/1", 0.1, 0, 0)], {"a": market})
    samples.add(2.1, [seat("a/0", 0.3, 2, 2)], {})
    found = samples.found
    assert sorted(found) == [(0, "a"), (0, "b"), (1, "a")]
    assert found[0, "a"][1:] == ("a", 0.4, 9, 3, 7.0)
    assert found[0, "b"][1:5] == ("b", 0.9, 1, 1)
    assert found[1, "a"] == (2.0, "a", 0.3, 2, 2, UNKNOWN_MARKET.bid_price)
