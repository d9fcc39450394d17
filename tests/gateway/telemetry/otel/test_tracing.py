"""Spans of one request, as the SDK gives them to an exporter."""

from types import SimpleNamespace

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import SpanKind, StatusCode

from gateway.telemetry.otel.tracing import TraceSampler
from gateway.telemetry.otel.vocabularies import VOCABULARIES

GIVEN = [(b"host", b"x"), (b"traceparent", b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01")]


class Hand:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.s = 1000.0

    def now_s(self) -> float:
        return self.s

    def wall_us(self) -> int:
        return round((self.s + 1e9) * 1e6)


@pytest.fixture
def kept() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def parts(kept):
    """`parts(sample=0.0)`: tracing, and its clock."""

    def make(sample: float = 1.0, vocabularies=()) -> SimpleNamespace:
        provider = TracerProvider(ParentBased(TraceIdRatioBased(sample)))
        provider.add_span_processor(SimpleSpanProcessor(kept))
        clock = Hand()
        return SimpleNamespace(
            clock=clock, tracing=TraceSampler(provider.get_tracer("t"), clock, vocabularies)
        )

    return make


def lengths(kept) -> dict[str, int]:
    """Names to milliseconds."""
    spans = kept.get_finished_spans()
    return {span.name: round((span.end_time - span.start_time) / 1e6) for span in spans}


def test_times_are_those_that_went_by(parts, kept, plan, step, ending) -> None:
    made = parts()
    trace = made.tracing.start_trace("req_1", "/v1/chat/completions", [])
    begun_s = made.clock.s
    made.clock.s += 0.002
    trace.on_decided(begun_s, plan())
    made.clock.s += 0.001
    told = trace.on_dispatched("req_1.1", 1, plan(), step())
    made.clock.s += 0.6
    trace.on_settled(ending())
    made.clock.s += 0.004
    trace.on_ended(200, None)
    assert lengths(kept) == {"decide": 2, "chat chat": 600, "POST /v1/chat/completions": 607}
    tried = next(
        get_finished_span
        for get_finished_span in kept.get_finished_spans()
        if get_finished_span.kind is SpanKind.CLIENT
    )
    assert tried.events[0].timestamp == tried.start_time + 100_000_000
    assert told["traceparent"].split("-")[2] == f"{tried.context.span_id:016x}"


def test_who_waited_for_a_place_has_a_span_of_it(parts, kept, plan, step, ending) -> None:
    made = parts()
    trace = made.tracing.start_trace("req_1", "/v1/x", [])
    trace.on_decided(made.clock.s, plan())
    made.clock.s += 0.5
    trace.on_decided(made.clock.s, plan())
    trace.on_dispatched("req_1.1", 1, plan(), step())
    trace.on_settled(ending())
    trace.on_ended(200, None)
    assert lengths(kept)["wait"] == 500


def test_a_second_attempt_did_not_wait(parts, kept, plan, step, ending) -> None:
    made = parts()
    trace = made.tracing.start_trace("req_1", "/v1/x", [])
    trace.on_decided(made.clock.s, plan())
    for number in (1, 2):
        trace.on_dispatched(f"req_1.{number}", number, plan(), step())
        trace.on_settled(ending(f"req_1.{number}", status="upstream_error", error="connect"))
    trace.on_ended(502, None)
    assert "wait" not in lengths(kept)
    codes = [
        get_finished_span.status.status_code
        for get_finished_span in kept.get_finished_spans()
        if get_finished_span.name != "decide"
    ]
    assert codes == [StatusCode.ERROR] * 3


def test_apis_are_told_nothing(parts, plan, step) -> None:
    trace = parts().tracing.start_trace("req_1", "/v1/x", GIVEN)
    assert trace.on_dispatched("req_1.1", 1, plan(), step(own=False, provider="x")) == {}


def test_the_clients_word_counts_before_ours(parts, kept) -> None:
    assert parts(sample=0.0).tracing.start_trace("req_1", "/v1/x", []) is None
    followed = parts(sample=0.0).tracing.start_trace("req_2", "/v1/x", GIVEN)
    followed.on_ended(200, None)
    assert kept.get_finished_spans()[0].context.trace_id == int("a" * 32, 16)
    unfollowed = [(b"traceparent", GIVEN[1][1][:-2] + b"00")]
    assert parts(sample=1.0).tracing.start_trace("req_3", "/v1/x", unfollowed) is None


def test_a_client_that_left_before_an_answer_is_told_so(parts, kept) -> None:
    parts().tracing.start_trace("req_1", "/v1/x", []).on_ended(None, "client_gone")
    (item,) = kept.get_finished_spans()
    assert item.attributes["breakeven.ended_by"] == "client_gone"
    assert "http.response.status_code" not in item.attributes


@pytest.mark.parametrize("name", [None, *sorted(VOCABULARIES)])
def test_spans_speak_a_vocabulary_only_where_it_is_configured(
    parts, kept, plan, step, ending, name
) -> None:
    chosen = [] if name is None else [VOCABULARIES[name]]
    trace = parts(vocabularies=chosen).tracing.start_trace("req_1", "/v1/x", [])
    asked = plan(user="u1")
    trace.on_decided(0.0, asked)
    trace.on_dispatched("req_1.1", 1, asked, step())
    trace.on_settled(ending())
    trace.on_ended(200, None)
    spans = {span.name: span.attributes for span in kept.get_finished_spans()}
    for span_name in ("POST /v1/x", "chat chat"):
        words = {word.partition(".")[0] for word in spans[span_name]}
        assert ("user" in words) == (name is not None)
        assert bool({"openinference", "langfuse"} & words) == (name is not None)
