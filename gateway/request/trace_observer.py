"""Observers of requests from outside: traces and further metrics.

Nobody watches by default, and then a request pays for a few comparisons. Whoever does is built by
`gateway.telemetry.otel`, with libraries that nothing else needs.
"""

from collections.abc import Iterable
from typing import Protocol

from gateway.http.connection import Header
from gateway.request.plan import AttemptPlan, RoutingPlan
from ledger.journals.records import AttemptSettled


class RequestTrace(Protocol):
    """One request, from its first byte to its last. Times are monotonic seconds."""

    def on_decided(self, begun_s: float, plan: RoutingPlan) -> None:
        """It was planned, from `begun_s` to now; again whenever it waited for a place."""

    def on_dispatched(
        self, attempt_id: str, number: int, plan: RoutingPlan, step: AttemptPlan
    ) -> dict[str, str]:
        """An attempt is dispatched: what else its target is told in headers."""

    def on_settled(self, record: AttemptSettled) -> None:
        """An attempt has ended, and the journal has it."""

    def on_ended(self, status: int | None, ended_by: str | None) -> None:
        """Nothing more is sent to the client; `status` is what it was told, if it was."""


class TraceObserver(Protocol):
    """One per worker."""

    def start_trace(self, request_id: str, path: str, headers: Iterable[Header]) -> RequestTrace:
        """A request has come."""

    def close(self) -> None:
        """Send what is left, for a second at most."""
