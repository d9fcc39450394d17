"""Prometheus metrics of the request path, with closed label sets.

Label values come from configuration and from closed enums; anything else is `other`, so a client
cannot grow `/metrics`. In multiprocess mode the files are keyed by worker index, not by pid: a
restarted worker continues its predecessor's counters and no file is ever left behind.
"""

from collections.abc import Collection

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

LATENCY_BUCKETS_S = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 30, 60)
OTHER = "other"


class Metrics:
    def __init__(
        self,
        registry: CollectorRegistry | None,
        *,
        models: Collection[str],
        targets: Collection[str],
    ) -> None:
        self._models = frozenset(models)
        self._targets = frozenset(targets)
        self.requests = Counter(
            "breakeven_requests",
            "Attempts by logical model, target, reason of the choice and outcome",
            ("model", "target", "reason", "status"),
            registry=registry,
        )
        self.duration = Histogram(
            "breakeven_request_duration_seconds",
            "From dispatch to the last byte of an attempt",
            ("target",),
            buckets=LATENCY_BUCKETS_S,
            registry=registry,
        )
        self.ttft = Histogram(
            "breakeven_ttft_seconds",
            "From dispatch to the first token of an attempt",
            ("target",),
            buckets=LATENCY_BUCKETS_S,
            registry=registry,
        )
        self.tokens = Counter(
            "breakeven_tokens",
            "Tokens by kind and backend",
            ("kind", "backend"),
            registry=registry,
        )
        self.cost = Counter(
            "breakeven_cost_usd",
            "Dollars charged (own engines: provisional); the ledger is exact, this is a float",
            ("backend",),
            registry=registry,
        )
        self.spill = Counter(
            "breakeven_spill",
            "Requests of models with own engines that an API served, by reason",
            ("reason",),
            registry=registry,
        )
        self.refusals = Counter(
            "breakeven_refusals", "Requests refused, by reason", ("reason",), registry=registry
        )
        self.slo = Counter(
            "breakeven_slo",
            "Finished requests by backend and whether they met their SLO",
            ("backend", "met"),
            registry=registry,
        )
        self.in_flight = Gauge(
            "breakeven_in_flight",
            "Requests being worked on",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.in_flight.set(0)  # what a predecessor that was killed worked on is over

    def model(self, name: str) -> str:
        return name if name in self._models else OTHER

    def target(self, name: str) -> str:
        return name if name in self._targets else OTHER
