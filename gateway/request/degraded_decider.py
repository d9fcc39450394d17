"""Decides, and goes on where deciding cannot be trusted: then the configured order holds.

Two things make it so. Telemetry is silent and what it said of an own engine is stale: that is our
own blindness, not the engine's fault, and to send everything to APIs would cost as much as an
outage. Or `router.decide` raises: a defect in it must cost optimality, never an answer. Either is
counted (`breakeven_static_decisions_total`) and logged, as an alarm, not as a way to run.
"""

import logging
from collections.abc import Callable, Sequence
from math import inf

from gateway.fleet.shared_load import SharedLoadTable
from gateway.request.request_counters import RequestCounters
from router.decide import decide
from router.static_order import static_order
from router.types import Candidate, Decision, Policy, RoutingRequest, TargetHealth

SILENT_S = 1.0  # four words missed; stale metrics must come to it before the order changes
LOG_S = 60.0
TELEMETRY, DECISION = "telemetry", "decision"
_UNKNOWN = TargetHealth.UNKNOWN

log = logging.getLogger("breakeven.failsafe")

Decide = Callable[[RoutingRequest, Policy, Sequence[Candidate]], Decision]


class DegradedDecider:
    """One per worker; `decide` is `router.decide` but for tests of its failing."""

    def __init__(
        self, board: SharedLoadTable, metrics: RequestCounters, decide: Decide = decide
    ) -> None:
        self._board, self._metrics, self._decide = board, metrics, decide
        self._told_s: dict[str, float] = {}
        for cause in (TELEMETRY, DECISION):
            metrics.count_static_decision(cause, 0)  # the first one is to be seen

    def decide(
        self, request: RoutingRequest, policy: Policy, candidates: Sequence[Candidate], now_s: float
    ) -> tuple[Decision, bool]:
        """The decision, and whether it is the configured order's. `candidates` come in it."""
        if self._board.silent_s(now_s) > SILENT_S and any(map(_stale, candidates)):
            self._alarm(TELEMETRY, "telemetry is silent", now_s)
            return static_order(request, policy, candidates, "telemetry is silent"), True
        try:
            return self._decide(request, policy, candidates), False
        except Exception as error:  # noqa: BLE001  (whatever is wrong with it, requests go on)
            name = type(error).__name__
            self._alarm(DECISION, f"deciding failed: {name}: {error}", now_s, error)
            return static_order(request, policy, candidates, f"deciding failed: {name}"), True

    def _alarm(self, cause: str, words: str, now_s: float, error: Exception | None = None) -> None:
        self._metrics.count_static_decision(cause)
        if now_s - self._told_s.get(cause, -inf) >= LOG_S:
            self._told_s[cause] = now_s
            log.error("%s; requests follow the configured order", words, exc_info=error)


def _stale(candidate: Candidate) -> bool:
    """An own engine that was seen, but not lately."""
    engine = candidate.engine
    return engine is not None and engine.health is _UNKNOWN and engine.age_s < inf
