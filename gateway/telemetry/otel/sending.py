"""Exports to a collector, counted; the first failure and the recovery are logged.

OpenTelemetry's exporters log each failed try, every few seconds while a collector is unreachable.
Here only the first failure is logged; later ones are counted until exports succeed for a while.
Spans that find the queue full are counted, too: new spans are dropped, queued ones are kept.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.http import metric_exporter, trace_exporter
from opentelemetry.sdk.metrics.export import MetricExportResult, MetricsData
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from prometheus_client import CollectorRegistry, Counter

from gateway.clock import Clock
from gateway.telemetry.otel.collector import CollectorSession

EXPORT_S = 5.0  # for one batch, with all its tries
QUEUE_SPANS = 2_048  # of a worker: waiting and being sent
STEADY_S = 10.0  # without a failure: recovered
SENT, LOST = "sent", "lost"

log = logging.getLogger("gateway.otel")


class ExportCounters:
    """Export counters of one worker, in the registry of `/metrics`."""

    def __init__(self, registry: CollectorRegistry | None) -> None:
        self.spans = Counter(
            "breakeven_otel_spans",
            "Spans that the collector took, and those that were lost",
            ("outcome",),
            registry=registry,
        )
        self.exports = Counter(
            "breakeven_otel_metric_exports",
            "Times that the histograms were sent, or could not be; the next has all that they hold",
            ("outcome",),
            registry=registry,
        )
        for counter in (self.spans, self.exports):
            for outcome in (SENT, LOST):
                counter.labels(outcome)  # Prometheus sees no increase when a series appears


class ExportPath:
    """One signal's export path. `says` is the logger that reports each failed try."""

    def __init__(self, signal: str, says: logging.Logger, counter: Counter, clock: Clock) -> None:
        self._signal, self._says, self._counter, self._clock = signal, says, counter, clock
        self._failed_s: float | None = None  # for the last time; `None` while it is not away
        self._lost = 0
        says.addFilter(self._is_log_shown)

    def close(self) -> None:
        self._says.removeFilter(self._is_log_shown)

    def count_lost(self, number: int) -> None:
        """Count items that will not be sent."""
        self._lost += number
        self._counter.labels(LOST).inc(number)

    def record_batch(self, number: int, *, taken: bool) -> None:
        """Record whether a batch of `number` items was accepted."""
        now_s = self._clock.now_s()
        if not taken:
            if self._failed_s is None:
                words = "the collector rejects data, further losses are only counted signal=%s"
                log.warning(words, self._signal)
            self._failed_s = now_s
            self.count_lost(number)
            return
        self._counter.labels(SENT).inc(number)
        if self._failed_s is not None and now_s - self._failed_s >= STEADY_S:
            log.warning(
                "the collector accepts data again signal=%s lost=%d", self._signal, self._lost
            )
            self._failed_s, self._lost = None, 0

    def _is_log_shown(self, _: logging.LogRecord) -> bool:
        return self._failed_s is None


class CountingSpanExporter(trace_exporter.OTLPSpanExporter):
    def __init__(
        self, url: str | None, headers: Mapping[str, str], counted: ExportCounters, clock: Clock
    ) -> None:
        super().__init__(url, headers=headers, timeout=EXPORT_S, session=CollectorSession())
        said = logging.getLogger(trace_exporter.__name__)
        self.way = ExportPath("spans", said, counted.spans, clock)
        self.handed = 0  # by the queue

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.handed += len(spans)
        found = super().export(spans)
        self.way.record_batch(len(spans), taken=found is SpanExportResult.SUCCESS)
        return found

    def shutdown(self) -> None:
        super().shutdown()  # type: ignore[no-untyped-call]  # its base has no types
        self.way.close()


class SpanQueue(BatchSpanProcessor):
    """The SDK's span queue, with a count of dropped spans."""

    def __init__(self, exporter: CountingSpanExporter) -> None:
        super().__init__(exporter, max_queue_size=QUEUE_SPANS)
        self._to = exporter
        self._taken = 0

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a span; runs on the worker's event loop only, the exporter's thread drains."""
        if self._taken - self._to.handed >= QUEUE_SPANS:
            self._to.way.count_lost(1)
            return
        self._taken += 1
        super().on_end(span)


class CountingMetricExporter(metric_exporter.OTLPMetricExporter):
    def __init__(
        self, url: str | None, headers: Mapping[str, str], counted: ExportCounters, clock: Clock
    ) -> None:
        super().__init__(url, headers=headers, timeout=EXPORT_S, session=CollectorSession())
        said = logging.getLogger(metric_exporter.__name__)
        self.way = ExportPath("metrics", said, counted.exports, clock)

    def export(self, metrics_data: MetricsData, *given: Any, **named: Any) -> MetricExportResult:
        found = super().export(metrics_data, *given, **named)
        self.way.record_batch(1, taken=found is MetricExportResult.SUCCESS)
        return found

    def shutdown(self, *given: Any, **named: Any) -> None:
        super().shutdown(*given, **named)
        self.way.close()
