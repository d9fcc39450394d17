"""Planner of lines: plans them like any request but without latency SLOs, then filters.

Rules, residency, prices and budgets are those of the key's traffic. Latency filters do not apply to
a line, because it has no latency SLO. The SLOs of live requests limit it through `router.idle`.
"""

from collections.abc import Callable
from contextvars import ContextVar

import msgspec

from gateway.batches.authority import LineTicket
from gateway.clock import Clock
from gateway.config.schema import PolicySloSection
from gateway.config.settings import Settings, resolve_model
from gateway.errors import RequestError
from gateway.fleet.fleet import serves_by_priority
from gateway.http.body import encode_raw
from gateway.kinds.inference_request import InferenceRequest
from gateway.request.plan import PlannerProtocol, RoutingPlan
from gateway.request.stage_turns import StageTurn
from ledger.identity.keys import Identity
from router.content import ContentTerms
from router.idle import TightestSlo, spare_decision
from router.reasons import PERMANENT, Reason
from router.request_kinds import KIND_TRAITS

RETRY_AFTER_S = 1.0
PRIORITY = 1


class LinePlanner:
    """Planner for lines, on top of a planner with settings from `drop_latency_targets`.

    `ticket` holds the ticket of the current line.
    """

    def __init__(
        self,
        plans: PlannerProtocol,
        promises: dict[str, TightestSlo],
        ticket: ContextVar[LineTicket],
        patient: frozenset[str] = frozenset(),
    ) -> None:
        """`patient` are pools that serve by priority, in which lines get a low priority."""
        self._plans = plans
        self._patient = patient
        self._promises = promises
        self._ticket = ticket

    def plan(
        self,
        request_id: str,
        asked: InferenceRequest,
        identity: Identity,
        *,
        clock: Clock,
        sticky: Callable[[str], str | None],
        turn: StageTurn | None = None,
    ) -> RoutingPlan:
        """Plan a line.

        Raises `RequestError` (`not_idle`) while waiting may help; that is not a try and leaves no
        record. A line that may spill tries later stages first; any other line waits for the first
        stage.
        """
        plan = self._plans.plan(request_id, asked, identity, clock=clock, sticky=sticky, turn=turn)
        spill = self._ticket.get().spill
        is_final = turn is not None and turn.is_final
        goes_on = spill and plan.route.is_staged and not is_final
        if not plan.decision.order:
            if (
                goes_on
                or plan.decision.reason in PERMANENT
                or plan.decision.reason is Reason.BUDGET
            ):
                return plan
            raise _waits(plan.decision.reason)
        decision = spare_decision(plan.decision, self._promises, spill=spill)
        if not decision.order:
            if goes_on:
                return plan.with_decision(decision)
            raise _waits(decision.reason)
        plan = plan.with_decision(decision)
        pools = {step.frozen.target.pool for step in plan.steps}
        decodes = KIND_TRAITS[asked.kind].decoded
        return _standing_back(plan) if decodes and pools <= self._patient else plan

    @property
    def inspects(self) -> bool:
        return self._plans.inspects

    def content_terms(
        self, request_id: str, asked: InferenceRequest, identity: Identity, clock: Clock
    ) -> tuple[ContentTerms, bool]:
        return self._plans.content_terms(request_id, asked, identity, clock)

    def prompt_tokens(
        self, asked: InferenceRequest, identity: Identity, clock: Clock | None = None
    ) -> int:
        return self._plans.prompt_tokens(asked, identity, clock)


def _standing_back(plan: RoutingPlan) -> RoutingPlan:
    """Set a priority behind all requests without one (0); engines serve the lowest first."""
    members = {**plan.asked.members, "priority": encode_raw(PRIORITY)}
    asked = msgspec.structs.replace(plan.asked, members=members)
    return msgspec.structs.replace(plan, asked=asked)


def priority_pools(settings: Settings) -> frozenset[str]:
    """Return the pools that run with `--scheduling-policy priority`; others reject `priority`."""
    return frozenset(name for name, pool in settings.pools.items() if serves_by_priority(pool))


def _waits(reason: Reason) -> RequestError:
    message = f"No engine is idle enough for a line of a batch: {reason}."
    return RequestError("not_idle", message, retry_after_s=RETRY_AFTER_S)


def drop_latency_targets(settings: Settings) -> Settings:
    """Return the settings with policies that have no latency SLO and no queue."""
    rules = tuple(
        rule.model_copy(update={"slo": PolicySloSection(), "otherwise": "reject"})
        for rule in settings.policies
    )
    return settings.model_copy(update={"policies": rules})


def tightest_slo_of_pools(settings: Settings) -> dict[str, TightestSlo]:
    """Return the tightest TTFT and TPOT of the policies that use each pool."""
    found: dict[str, TightestSlo] = {}
    for rule in settings.policies:
        for pool in _pools(settings, rule.match.models or tuple(settings.models)):
            known = found.get(pool, TightestSlo())
            found[pool] = TightestSlo(
                min(known.ttft_ms, rule.slo.ttft_ms or known.ttft_ms),
                min(known.tpot_ms, rule.slo.tpot_ms or known.tpot_ms),
            )
    return found


def _pools(settings: Settings, names: tuple[str, ...]) -> set[str]:
    resolved = (resolve_model(settings, name) for name in names)
    targets = [target for pair in resolved if pair is not None for target in pair[1].reachable]
    return {target.removeprefix("pool:") for target in targets if target.startswith("pool:")}
