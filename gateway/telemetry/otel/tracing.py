"""Spans of one request: the request, its decision, its wait, and every attempt.

An own engine receives the attempt's `traceparent`, so that spans that it sends to the same
collector become children of the attempt. APIs receive none, because internals are private. Times
are those of the journal, so a trace agrees with the ledger. Unsampled requests create nothing.
"""

from collections.abc import Iterable, Sequence

from opentelemetry.propagators.textmap import Getter
from opentelemetry.sdk.trace import Span
from opentelemetry.trace import (
    SpanKind,
    Status,
    StatusCode,
    Tracer,
    format_span_id,
    format_trace_id,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from gateway.clock import Clock
from gateway.http.connection import Header
from gateway.request.plan import AttemptPlan, RoutingPlan
from gateway.telemetry.otel import genai_attributes
from gateway.telemetry.otel.vocabularies import SpanVocabulary
from ledger.journals.records import AttemptSettled

DECIDE, WAIT, FIRST_TOKEN = "decide", "wait", "gen_ai.first_token"
_PARENT, _STATE = b"traceparent", b"tracestate"
_SERVER_FAULT = 500


class TraceHeaders(Getter[dict[str, str]]):
    def get(self, carrier: dict[str, str], key: str) -> list[str] | None:
        found = carrier.get(key)
        return None if found is None else [found]

    def keys(self, carrier: dict[str, str]) -> list[str]:
        return list(carrier)


class TraceSampler:
    """Starter of traces, sampled as the client's `traceparent` says, else by share."""

    def __init__(
        self, tracer: Tracer, clock: Clock, vocabularies: Sequence[SpanVocabulary] = ()
    ) -> None:
        self._tracer = tracer
        self._clock = clock
        self._vocabularies = vocabularies
        self._propagator = TraceContextTextMapPropagator()
        self._getter = TraceHeaders()

    def start_trace(
        self, request_id: str, path: str, headers: Iterable[Header]
    ) -> "SpanTrace | None":
        carrier = {
            name.decode(): value.decode("latin-1")
            for name, value in headers
            if name in (_PARENT, _STATE)
        }
        context = self._propagator.extract(carrier, getter=self._getter) if carrier else None
        span = self._tracer.start_span(
            f"POST {path}",
            context,
            SpanKind.SERVER,
            genai_attributes.of_request(request_id, path),
            start_time=self._clock.wall_us() * 1000,
        )
        if not isinstance(span, Span):
            return None
        return SpanTrace(self._tracer, span, self._clock, self._vocabularies)


class SpanTrace:
    """Spans of one sampled request, as a `RequestTrace`."""

    def __init__(
        self,
        tracer: Tracer,
        span: Span,
        clock: Clock,
        vocabularies: Sequence[SpanVocabulary] = (),
    ) -> None:
        self._tracer = tracer
        self._span = span
        self._clock = clock
        self._vocabularies = vocabularies
        self._within = set_span_in_context(span)
        self._attempts: dict[str, tuple[Span, int]] = {}
        self._planned_ns: int | None = None  # when it was planned for the first time
        self._waited = False

    def on_decided(self, begun_s: float, plan: RoutingPlan) -> None:
        now_ns = self._now_ns()
        begun_ns = now_ns - round((self._clock.now_s() - begun_s) * 1e9)
        self._past(DECIDE, begun_ns, now_ns, genai_attributes.of_decision(plan))
        self._waited = self._planned_ns is not None
        for vocabulary in self._vocabularies:
            self._span.set_attributes(vocabulary.of_request(plan))
        self._planned_ns = self._planned_ns or now_ns

    def on_dispatched(
        self, attempt_id: str, number: int, plan: RoutingPlan, step: AttemptPlan
    ) -> dict[str, str]:
        """Start the attempt's span. Return its `traceparent` header for an own engine."""
        now_ns = self._now_ns()
        if number == 1 and self._waited and self._planned_ns is not None:
            self._past(WAIT, self._planned_ns, now_ns, {})
        attributes = genai_attributes.of_attempt(attempt_id, number, plan, step)
        name = f"{genai_attributes.operation(plan)} {plan.model}"
        span = self._tracer.start_span(
            name, self._within, SpanKind.CLIENT, attributes, start_time=now_ns
        )
        assert isinstance(span, Span)  # children of a sampled span are sampled
        for vocabulary in self._vocabularies:
            span.set_attributes(vocabulary.of_attempt(plan, step))
        self._attempts[attempt_id] = (span, now_ns)
        return {_PARENT.decode(): _parent(span)} if step.frozen.target.own else {}

    def on_settled(self, record: AttemptSettled) -> None:
        span, begun_ns = self._attempts.pop(record.attempt_id)
        if record.ttft_us is not None:
            span.add_event(FIRST_TOKEN, {}, begun_ns + record.ttft_us * 1000)
        span.set_attributes(genai_attributes.of_ending(record))
        for vocabulary in self._vocabularies:
            span.set_attributes(vocabulary.of_ending(record, begun_ns))
        if (failure := genai_attributes.error_of(record)) is not None:
            span.set_status(Status(StatusCode.ERROR, failure))
        span.end(begun_ns + record.duration_us * 1000)

    def on_ended(self, status: int | None, ended_by: str | None) -> None:
        if status is not None:
            self._span.set_attribute("http.response.status_code", status)
        if ended_by is not None:
            self._span.set_attribute("breakeven.ended_by", ended_by)
        if status is None or status >= _SERVER_FAULT:
            self._span.set_status(Status(StatusCode.ERROR, ended_by or str(status)))
        self._span.end(self._now_ns())

    def _past(
        self, name: str, begun_ns: int, ended_ns: int, said: genai_attributes.Attributes
    ) -> None:
        span = self._tracer.start_span(
            name, self._within, SpanKind.INTERNAL, said, start_time=begun_ns
        )
        span.end(ended_ns)

    def _now_ns(self) -> int:
        return self._clock.wall_us() * 1000


def _parent(span: Span) -> str:
    """Return a `traceparent` of W3C Trace Context, level 1: version, trace, span, sampled."""
    context = span.get_span_context()
    trace_id, span_id = format_trace_id(context.trace_id), format_span_id(context.span_id)
    return f"00-{trace_id}-{span_id}-01"
