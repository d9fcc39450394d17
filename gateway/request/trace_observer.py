"""Interfaces for observers of requests: traces and further metrics.

Without an observer, which is the default, a request pays for a few comparisons.
`gateway.telemetry.otel` implements them, with libraries that nothing else needs.
"""

from collections.abc import Iterable
from typing import Protocol

from gateway.http.connection import Header
from gateway.request.plan import AttemptPlan, RoutingPlan
from ledger.journals.records import AttemptSettled


class RequestTrace(Protocol):
    """The trace of one request; implemented by `SpanTrace`. Times are monotonic seconds."""

    def on_decided(self, begun_s: float, plan: RoutingPlan) -> None:
        """Record that the request was planned since `begun_s`; called again after each wait."""

    def on_dispatched(
        self, attempt_id: str, number: int, plan: RoutingPlan, step: AttemptPlan
    ) -> dict[str, str]:
        """Record the dispatch of an attempt; return extra headers for its target."""

    def on_settled(self, record: AttemptSettled) -> None:
        """Record that an attempt has ended and is in the journal."""

    def on_ended(self, status: int | None, ended_by: str | None) -> None:
        """Record the end of the response; `status` is what the client got, if anything."""


class TraceObserver(Protocol):
    """A maker of request traces, one per worker; implemented in `gateway.telemetry.otel`."""

    def start_trace(self, request_id: str, path: str, headers: Iterable[Header]) -> RequestTrace:
        """Return the trace of a new request."""

    def close(self) -> None:
        """Send what is left, for at most a second."""
