"""Metrics of the response cache, with closed labels; absent if the cache is disabled."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge

from ledger.money import PUSD_PER_USD

RESULTS = ("hit", "miss", "bypass", "stored", "unrecorded")


class CacheMetrics:
    """Implements `gateway.request.cache.response_cache.CacheCounters`.

    `count` adds to a counter in memory, as `RequestMetrics.count` does.
    """

    def __init__(self, registry: CollectorRegistry | None, count: Callable[..., None]) -> None:
        self._count = count
        self.lookups = Counter(
            "breakeven_response_cache",
            "Requests that may be answered from the cache, by what came of it, and answers stored",
            ("result",),
            registry=registry,
        )
        self.avoided = Counter(
            "breakeven_response_cache_avoided_usd",
            "Dollars that earlier answers were booked at; own: a share of a bill that stays",
            ("backend",),
            registry=registry,
        )
        self.used = Gauge(
            "breakeven_response_cache_bytes",
            "Memory of workers that holds answers",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.used.set(0)  # a predecessor's answers may be there, and are counted with the next
        for result in RESULTS:
            self.lookups.labels(result)
        for backend in ("own", "api"):
            self.avoided.labels(backend)

    def count_lookup(self, result: str) -> None:
        self._count(self.lookups, result)

    def count_avoided(self, backend: str, cost_pusd: int) -> None:
        self._count(self.avoided, backend, amount=cost_pusd / PUSD_PER_USD)

    def set_used_bytes(self, used: int) -> None:
        self.used.set(used)
