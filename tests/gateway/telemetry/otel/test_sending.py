"""What a collector takes and what is lost is counted; that it is away is said once."""

import logging
import threading

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from prometheus_client import CollectorRegistry

from gateway.telemetry.otel.sending import (
    LOST,
    QUEUE_SPANS,
    SENT,
    STEADY_S,
    CountingSpanExporter,
    ExportCounters,
    ExportPath,
    SpanQueue,
)

SAYS = logging.getLogger("tests.says")


class Hands:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.at_s = 100.0

    def now_s(self) -> float:
        return self.at_s


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def way(registry, hands):
    found = ExportPath("spans", SAYS, ExportCounters(registry).spans, hands)
    yield found
    found.close()


def spans(registry: CollectorRegistry, outcome: str) -> float | None:
    return registry.get_sample_value("breakeven_otel_spans_total", {"outcome": outcome})


def fails(way: ExportPath, number: int = 1) -> None:
    """As an exporter does: it says it, and gives up."""
    SAYS.error("Failed to export spans batch code: 500")
    way.record_batch(number, taken=False)


def test_what_is_counted_begins_at_0(registry) -> None:
    ExportCounters(registry)
    assert (spans(registry, SENT), spans(registry, LOST)) == (0, 0)
    exports = "breakeven_otel_metric_exports_total"
    assert registry.get_sample_value(exports, {"outcome": LOST}) == 0


def test_an_hour_without_a_collector_is_said_once(way, hands, registry, caplog) -> None:
    for _ in range(720):
        fails(way, 10)
        hands.at_s += 5.0
    assert [record.getMessage() for record in caplog.records] == [
        "Failed to export spans batch code: 500",
        "the collector rejects data, further losses are only counted signal=spans",
    ]
    assert spans(registry, LOST) == 7_200


def test_that_it_is_back_is_said_with_what_was_lost(way, hands, registry, caplog) -> None:
    fails(way, 10)
    hands.at_s += STEADY_S
    way.record_batch(5, taken=True)
    way.record_batch(5, taken=True)
    assert caplog.messages[2:] == ["the collector accepts data again signal=spans lost=10"]
    assert (spans(registry, SENT), spans(registry, LOST)) == (10, 10)
    fails(way)
    assert len(caplog.messages) == 5  # away anew


def test_one_that_takes_every_other_batch_is_away(way, hands, caplog) -> None:
    for _ in range(100):
        fails(way)
        hands.at_s += 5.0
        way.record_batch(1, taken=True)
    assert len(caplog.messages) == 2


def test_a_full_queue_drops_what_is_new_and_counts_it(registry, hands, there, monkeypatch) -> None:
    """While one batch is on its way, for ever."""
    released = threading.Event()
    exporter = CountingSpanExporter(there.url, {}, ExportCounters(registry), hands)
    monkeypatch.setattr(
        "opentelemetry.exporter.otlp.proto.http.trace_exporter.OTLPSpanExporter.export",
        lambda *_: released.wait(20) and SpanExportResult.SUCCESS,
    )
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SpanQueue(exporter))
    tracer = tracers.get_tracer("test")
    made = QUEUE_SPANS * 2
    for _ in range(made):
        tracer.start_span("one").end()
    lost = spans(registry, LOST)
    assert lost is not None
    assert 0 < lost <= QUEUE_SPANS
    released.set()
    tracers.shutdown()
    assert spans(registry, SENT) == made - lost
