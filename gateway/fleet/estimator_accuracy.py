"""Accuracy of each estimator: predicted against observed values.

The metrics are sums, so Prometheus can evaluate any time range. Predicted over observed is the bias
(ideally 1); error over observed is the relative mean absolute error (ideally 0). An API's latency
is predicted by its median, which is lower than the mean of the observations.
"""

from enum import StrEnum
from math import isfinite

from prometheus_client import CollectorRegistry, Counter

_LABELS = ("estimate", "backend")


class EstimatorName(StrEnum):
    PROMPT_TOKENS = "prompt_tokens"
    OUTPUT_TOKENS = "output_tokens"  # of one choice, within the client's limit
    TTFT_S = "ttft_seconds"
    TPOT_S = "tpot_seconds"


class EstimatorAccuracy:
    """Sums of predicted and observed values, kept in memory until `flush`."""

    def __init__(self, registry: CollectorRegistry | None) -> None:
        self._predicted = Counter(
            "breakeven_estimate_predicted",
            "Sum of what was predicted of finished attempts",
            _LABELS,
            registry=registry,
        )
        self._observed = Counter(
            "breakeven_estimate_observed",
            "Sum of what came of them, in the same unit",
            _LABELS,
            registry=registry,
        )
        self._error = Counter(
            "breakeven_estimate_error",
            "Sum of the absolute differences",
            _LABELS,
            registry=registry,
        )
        self._count = Counter(
            "breakeven_estimates",
            "Attempts whose prediction was held against what came",
            _LABELS,
            registry=registry,
        )
        self._sums: dict[tuple[EstimatorName, str], list[float]] = {}

    def note(self, what: EstimatorName, backend: str, predicted: float, observed: float) -> None:
        """Add one pair of values.

        Infinite predictions, for a full engine that cannot keep any pace, are skipped.
        """
        if not isfinite(predicted):
            return
        sums = self._sums.get((what, backend))
        if sums is None:
            sums = self._sums[what, backend] = [0.0, 0.0, 0.0, 0.0]
        sums[0] += predicted
        sums[1] += observed
        sums[2] += abs(predicted - observed)
        sums[3] += 1.0

    def flush(self) -> None:
        every, self._sums = self._sums, {}
        counters = self._predicted, self._observed, self._error, self._count
        for (what, backend), sums in every.items():
            for counter, amount in zip(counters, sums, strict=True):
                counter.labels(what.value, backend).inc(amount)
