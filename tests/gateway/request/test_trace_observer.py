"""A follower of requests gets every event of a `RequestTrace` and a `TraceObserver`."""

from gateway.request.trace_observer import RequestTrace, TraceObserver
from gateway.telemetry.otel.exporting import OtelObserver, RequestTelemetry


def verbs(protocol: type) -> set[str]:
    return {name for name, value in vars(protocol).items() if callable(value) and name[0] != "_"}


def test_who_follows_by_opentelemetry_hears_all_of_it() -> None:
    assert (
        verbs(RequestTrace)
        == {"on_decided", "on_dispatched", "on_settled", "on_ended"}
        <= verbs(RequestTelemetry)
    )
    assert verbs(TraceObserver) == {"start_trace", "close"} <= verbs(OtelObserver)
