"""Metrics of attempts that used two engines: outcome of each part, and KV transfer time.

Labels are engines of the configuration and closed values, so a client adds no series.
"""

from collections.abc import Callable, Iterable

from prometheus_client import CollectorRegistry, Counter

from ledger.journals.records import AttemptLeg


class LegMetrics:
    """Counters of attempt parts; `count` adds in memory, like `RequestMetrics.count`."""

    def __init__(self, registry: CollectorRegistry | None, count: Callable[..., None]) -> None:
        self._count = count
        self.legs = Counter(
            "breakeven_engine_legs",
            "Parts of attempts that took two engines, by engine, role and how the part ended",
            ("engine", "role", "outcome"),
            registry=registry,
        )
        self.transfers = Counter(
            "breakeven_kv_transfers",
            "Prompts whose KV an engine fetched from another and answered",
            ("engine",),
            registry=registry,
        )
        self.seconds = Counter(
            "breakeven_kv_transfer_seconds",
            "From the end of a prompt's reading elsewhere to the first token: a move and a step",
            ("engine",),
            registry=registry,
        )

    def count_legs(self, legs: Iterable[AttemptLeg]) -> None:
        for leg in legs:
            self._count(self.legs, leg.engine, leg.role, leg.outcome)
            if leg.transfer_us is not None:
                self._count(self.transfers, leg.engine)
                self._count(self.seconds, leg.engine, amount=leg.transfer_us / 1e6)
