"""OpenTelemetry SDK set up by the configuration: batches, sent from its own threads.

Spans that cannot be sent are dropped when the bounded queue is full: an unreachable collector costs
memory for a few thousand spans and delays no request. `OTEL_*` variables do not replace configured
values, including headers; the others work as the SDK documents.
"""

import threading
from collections.abc import Iterable, Mapping
from importlib.metadata import version

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from prometheus_client import CollectorRegistry

from gateway.clock import Clock
from gateway.config.credentials import collector_headers
from gateway.config.schema_otel import OpenTelemetrySection
from gateway.http.connection import Header
from gateway.request.plan import AttemptPlan, RoutingPlan
from gateway.telemetry.otel.genai import GenAi
from gateway.telemetry.otel.sending import (
    CountingMetricExporter,
    CountingSpanExporter,
    ExportCounters,
    SpanQueue,
)
from gateway.telemetry.otel.tracing import SpanTrace, TraceSampler
from gateway.telemetry.otel.vocabularies import VOCABULARIES
from ledger.journals.records import AttemptSettled

SCOPE = "breakeven"
LAST_S = 1.0  # for the last batch when a worker ends


class OtelObserver:
    """Observer of requests that exports spans and metrics; a `TraceObserver`."""

    def __init__(
        self,
        settings: OpenTelemetrySection,
        resource: Resource,
        headers: Mapping[str, str],
        names: tuple[frozenset[str], frozenset[str]],
        clock: Clock,
        counted: ExportCounters,
    ) -> None:
        """Create the observer. `names` are the models and the targets with their own series."""
        self._sent: list[
            tuple[TracerProvider | MeterProvider, CountingSpanExporter | CountingMetricExporter]
        ] = []
        self._tracing: TraceSampler | None = None
        self._genai: GenAi | None = None
        if settings.traces:
            spans = CountingSpanExporter(settings.traces_url, headers, counted, clock)
            sampler = ParentBased(TraceIdRatioBased(settings.sample))
            tracers = TracerProvider(sampler, resource, shutdown_on_exit=False)
            tracers.add_span_processor(SpanQueue(spans))
            vocabularies = [VOCABULARIES[name] for name in settings.vocabularies]
            tracer = tracers.get_tracer(SCOPE, version(SCOPE))
            self._tracing = TraceSampler(tracer, clock, vocabularies)
            self._sent.append((tracers, spans))
        if settings.metrics:
            sums = CountingMetricExporter(settings.metrics_url, headers, counted, clock)
            reader = PeriodicExportingMetricReader(sums)
            meters = MeterProvider([reader], resource, shutdown_on_exit=False)
            self._genai = GenAi(meters.get_meter(SCOPE, version(SCOPE)), *names)
            self._sent.append((meters, sums))

    def start_trace(
        self, request_id: str, path: str, headers: Iterable[Header]
    ) -> "RequestTelemetry":
        tracing = self._tracing
        trace = None if tracing is None else tracing.start_trace(request_id, path, headers)
        return RequestTelemetry(trace, self._genai)

    def close(self) -> None:
        """Shut down within a second; the SDK would wait half a minute for each signal."""
        ends = [threading.Thread(target=item.shutdown, daemon=True) for item, _ in self._sent]
        for end in ends:
            end.start()
        for end in ends:
            end.join(LAST_S / len(ends))
        for end, (_, way) in zip(ends, self._sent, strict=True):
            if end.is_alive():
                way.shutdown()  # no further try


class RequestTelemetry:
    """A `RequestTrace` with spans of sampled requests and histograms of all."""

    __slots__ = ("_genai", "_sent", "_trace")

    def __init__(self, trace: SpanTrace | None, genai: GenAi | None) -> None:
        self._trace = trace
        self._genai = genai
        self._sent: dict[str, tuple[RoutingPlan, AttemptPlan]] = {}

    def on_decided(self, begun_s: float, plan: RoutingPlan) -> None:
        if self._trace is not None:
            self._trace.on_decided(begun_s, plan)

    def on_dispatched(
        self, attempt_id: str, number: int, plan: RoutingPlan, step: AttemptPlan
    ) -> dict[str, str]:
        self._sent[attempt_id] = plan, step
        return (
            {} if self._trace is None else self._trace.on_dispatched(attempt_id, number, plan, step)
        )

    def on_settled(self, record: AttemptSettled) -> None:
        sent = self._sent.pop(record.attempt_id, None)
        if sent is None:
            return  # it ended before it was sent
        if self._trace is not None:
            self._trace.on_settled(record)
        if self._genai is not None:
            self._genai.record_attempt(*sent, record)

    def on_ended(self, status: int | None, ended_by: str | None) -> None:
        if self._trace is not None:
            self._trace.on_ended(status, ended_by)


def make_otel_observer(
    settings: OpenTelemetrySection,
    worker: str,
    names: tuple[frozenset[str], frozenset[str]],
    clock: Clock,
    environ: Mapping[str, str],
    registry: CollectorRegistry | None,
) -> OtelObserver:
    """Return the observer; `worker` identifies this process, as host and worker number."""
    said = {
        "service.name": SCOPE,
        "service.version": version(SCOPE),
        "service.instance.id": worker,
    }
    if settings.environment is not None:
        said["deployment.environment.name"] = settings.environment
    headers = collector_headers(settings, environ)
    sent = {name: value.reveal() for name, value in headers.items()}
    counted = ExportCounters(registry)
    return OtelObserver(settings, Resource.create(said), sent, names, clock, counted)
