"""Decider that falls back to the configured order where a decision cannot be trusted.

There are two cases. In one, telemetry is silent and its figures of an own engine are stale. The
engine may be well then, and sending everything to APIs would cost as much as an outage. In the
other, `router.decide` raises: a defect there may cost optimality but no answer. Both are counted
(`breakeven_static_decisions_total`) and logged as errors.
"""

import logging
from collections.abc import Callable, Sequence
from math import inf

from gateway.fleet.shared_load import SharedLoadTable
from gateway.request.request_counters import RequestCounters
from router.decide import decide
from router.static_order import static_order
from router.types import Candidate, Decision, Policy, RoutingRequest, TargetHealth

SILENT_S = 1.0  # four missed updates; metrics must also be stale for the order to change
LOG_S = 60.0
TELEMETRY, DECISION = "telemetry", "decision"
_UNKNOWN = TargetHealth.UNKNOWN

log = logging.getLogger("breakeven.failsafe")

Decide = Callable[[RoutingRequest, Policy, Sequence[Candidate]], Decision]


class DegradedDecider:
    """The decider of one worker; tests replace `decide`, which is `router.decide`."""

    def __init__(
        self, board: SharedLoadTable, metrics: RequestCounters, decide: Decide = decide
    ) -> None:
        self._board, self._metrics, self._decide = board, metrics, decide
        self._told_s: dict[str, float] = {}
        for cause in (TELEMETRY, DECISION):
            metrics.count_static_decision(cause, 0)  # makes the series visible from the start

    def decide(
        self, request: RoutingRequest, policy: Policy, candidates: Sequence[Candidate], now_s: float
    ) -> tuple[Decision, bool]:
        """Return the decision, and whether it is the configured order.

        `candidates` are given in the configured order.
        """
        if self._board.silent_s(now_s) > SILENT_S and any(map(_stale, candidates)):
            self._alarm(TELEMETRY, "telemetry is silent", now_s)
            return static_order(request, policy, candidates, "telemetry is silent"), True
        try:
            return self._decide(request, policy, candidates), False
        except Exception as error:  # noqa: BLE001  (requests go on after any defect here)
            name = type(error).__name__
            self._alarm(DECISION, f"deciding failed: {name}: {error}", now_s, error)
            return static_order(request, policy, candidates, f"deciding failed: {name}"), True

    def _alarm(self, cause: str, words: str, now_s: float, error: Exception | None = None) -> None:
        self._metrics.count_static_decision(cause)
        if now_s - self._told_s.get(cause, -inf) >= LOG_S:
            self._told_s[cause] = now_s
            log.error("requests follow the configured order: %s", words, exc_info=error)


def _stale(candidate: Candidate) -> bool:
    """Return whether the candidate is an own engine whose last metrics are too old."""
    engine = candidate.engine
    return engine is not None and engine.health is _UNKNOWN and engine.age_s < inf
