"""The accuracy of each estimator: expected values against observed ones.

Sums, so that Prometheus can ask for any span: predicted over observed is an estimator's bias, error
over observed its mean absolute error, both 1 and 0 at best. An API's latencies are predicted by
their median, which lies below the mean of what is observed.
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
    """Kept in memory until `flush`, as all counts of the request path."""

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
        """A pace that a full engine cannot keep at all is infinite, and counts for nothing."""
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
