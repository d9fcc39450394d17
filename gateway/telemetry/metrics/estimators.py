"""Metrics of learned estimates: observations offered, rejections by reason, values.

No series is for a single team; `breakeven estimates show` has a team's own estimates.
"""

from collections.abc import Callable, Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge

from router.estimator_rules import Estimator, Objection

_OF_ALL_USAGE = (Objection.UNREPORTED, Objection.DISPUTED)  # the others are about bytes alone
Statistics = Mapping[tuple[Estimator, str], float]


class EstimatorMetrics:
    """Estimator metrics. Counts stay in memory until `flush`; values are read at each scrape."""

    def __init__(self, registry: CollectorRegistry | None) -> None:
        self.observations = Counter(
            "breakeven_estimator_observations",
            "Finished attempts that an estimator was offered",
            ("estimator",),
            registry=registry,
        )
        self.rejected = Counter(
            "breakeven_estimator_rejected",
            "Those that it did not learn from, by reason: unreported or disputed usage; media, "
            "tools, members or a kind that bytes of text do not tell; too many or too few tokens",
            ("estimator", "reason"),
            registry=registry,
        )
        self.value = Gauge(
            "breakeven_estimator_value",
            "What is learned at this moment, over all keys of the host: how many, the least, "
            "median and most bytes per token, the longest template, the mean output, seconds of "
            "latency, tokens held beside a limit, tokens a second of unseen output, factors and "
            "context by which prompts were billed beyond their bounds",
            ("estimator", "statistic"),
            registry=registry,
            multiprocess_mode="mostrecent",
        )
        self._counted: dict[tuple[str, Objection | None], int] = {}
        self._sources: list[Callable[[], Statistics]] = []

    def count(self, estimator: str, objection: Objection | None) -> None:
        """Count an attempt once, as `bytes_per_token`, for both estimators that learn from it."""
        key = estimator, objection
        self._counted[key] = self._counted.get(key, 0) + 1

    def watch(self, source: Callable[[], Statistics]) -> None:
        """Add a source of values of some estimators."""
        self._sources.append(source)

    def flush(self) -> None:
        counted, self._counted = self._counted, {}
        for (estimator, objection), amount in counted.items():
            self._publish(estimator, objection, amount)
            if estimator == Estimator.BYTES_PER_TOKEN:
                kept = objection if objection in _OF_ALL_USAGE else None
                self._publish(Estimator.OUTPUT_TOKENS.value, kept, amount)

    def _publish(self, estimator: str, objection: Objection | None, amount: int) -> None:
        self.observations.labels(estimator).inc(amount)
        if objection is not None:
            self.rejected.labels(estimator, objection.value).inc(amount)

    def look(self) -> None:
        """Publish the current values."""
        for source in self._sources:
            for (estimator, statistic), value in source().items():
                self.value.labels(estimator.value, statistic).set(value)
