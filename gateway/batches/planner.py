"""The plan of a line: made as any request's, without promises of latency, then narrowed.

Rules, residency, prices and budgets are those of its key's traffic. A line promises nobody a first
token, so latency filters of its policy do not keep it away; what live requests are promised does,
by `router.idle`.
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
    """Over a planner that was made with `drop_latency_targets`; `ticket` is of the line in work."""

    def __init__(
        self,
        plans: PlannerProtocol,
        promises: dict[str, TightestSlo],
        ticket: ContextVar[LineTicket],
        patient: frozenset[str] = frozenset(),
    ) -> None:
        """`patient`: pools whose engines serve by priority, so that lines stand back there, too."""
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
        """Raises `not_idle` while waiting may help: that is no try, and leaves no trace.

        A line that may spill goes on to later stages first; of others each waits for the first.
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
    """Behind every request without a priority (0): the engine takes the lowest first."""
    members = {**plan.asked.members, "priority": encode_raw(PRIORITY)}
    asked = msgspec.structs.replace(plan.asked, members=members)
    return msgspec.structs.replace(plan, asked=asked)


def priority_pools(settings: Settings) -> frozenset[str]:
    """Pools whose engines are told `--scheduling-policy priority`; others refuse the member."""
    return frozenset(name for name, pool in settings.pools.items() if serves_by_priority(pool))


def _waits(reason: Reason) -> RequestError:
    message = f"No engine is idle enough for a line of a batch: {reason}."
    return RequestError("not_idle", message, retry_after_s=RETRY_AFTER_S)


def drop_latency_targets(settings: Settings) -> Settings:
    """Return the rules without latency promises and without waiting for room in a worker."""
    rules = tuple(
        rule.model_copy(update={"slo": PolicySloSection(), "otherwise": "reject"})
        for rule in settings.policies
    )
    return settings.model_copy(update={"policies": rules})


def tightest_slo_of_pools(settings: Settings) -> dict[str, TightestSlo]:
    """By pool, the tightest latencies among the policies of what is served there."""
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
