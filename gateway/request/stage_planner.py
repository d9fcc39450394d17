"""Plans of a request for dispatch: the first stage that can serve it, then the next ones.

A model without later stages is planned once, and waits if its policy queues. Otherwise each stage
is planned when it is due, on the state at that time. The policy's fallback for requests without a
target holds for the whole model. Only if no stage can serve, the request waits, or is tried against
its SLO, from the first stage on.
"""

from dataclasses import dataclass, replace
from functools import partial

import msgspec

from gateway.clock import Clock
from gateway.errors import RequestError
from gateway.fleet.demand_counter import DemandCounter
from gateway.http.fields import RequestHead
from gateway.kinds.inference_request import InferenceRequest
from gateway.request.active_policies import PolicyDerived
from gateway.request.admission import BudgetAdmission
from gateway.request.answer_guard import guard_answer
from gateway.request.attempt import CandidateQueue
from gateway.request.cache.cacheable import check_words
from gateway.request.cache.response_cache import ResponseCache
from gateway.request.client_response import ClientResponse
from gateway.request.content_inspector import ContentInspector, ContentRefusal
from gateway.request.lesser_requests import ask_less
from gateway.request.limits.admission_queue import AdmissionQueue, QueueFull
from gateway.request.limits.rate_limiter import RateLimiter, rate_error
from gateway.request.metering import UsageMeter
from gateway.request.plan import PlannerProtocol, RoutingPlan
from gateway.request.refusals import BudgetShortfall, infeasible, over_budget, queue_refusal
from gateway.request.routes import RouteContext
from gateway.request.session_affinity import SessionAffinity
from gateway.request.stage_turns import StageTurn, pack_decision
from ledger.identity.keys import Identity
from router.decide import main_reason
from router.filters import counted_tokens
from router.reasons import PERMANENT, Reason
from router.stages import causes_of, is_due
from router.types import InfeasibleAction


@dataclass(frozen=True, slots=True, kw_only=True)
class StagePlanner:
    """The planner of the stages of one worker's requests."""

    plans: PolicyDerived[PlannerProtocol]  # under the policies in force
    admission: BudgetAdmission
    metering: UsageMeter
    sessions: SessionAffinity
    clock: Clock
    waiting: AdmissionQueue
    limits: RateLimiter | None  # `None`: no rate limits
    demanded: DemandCounter | None  # `None`: requests do not count as demand
    inspector: ContentInspector | None = None  # `None`: content that a policy restricts is kept
    cache: ResponseCache | None = None  # `None`: no response cache

    async def inspect(
        self, asked: InferenceRequest, identity: Identity, reply: ClientResponse
    ) -> InferenceRequest:
        """Return the request as its policy lets it be sent. Raises `ContentRefusal`."""
        terms, inside = self.plans.value.content_terms(
            reply.request_id, asked, identity, self.clock
        )
        if not terms or self.inspector is None:
            reply.keep_allowed(asked, masked=False)
            return asked
        try:
            made = await self.inspector.inspect(asked, terms, reply.request_id, inside=inside)
        except ContentRefusal as refusal:
            held = msgspec.structs.replace(asked, content=refusal.findings)
            plan, status = self._plan(held, identity, reply), refusal.row.status
            self._note(plan)
            self.metering.refuse(plan, reason=Reason.CONTENT.value, http_status=status)
            raise
        is_changed = made.members is not asked.members or made.kept is not asked.kept
        reply.keep_allowed(made, masked=is_changed)
        if guards := self.inspector.guards_of(terms):
            guard_answer(reply, guards, asked.model, self.inspector.count)
        return made

    def consider_cache(
        self,
        reply: ClientResponse,
        asked: InferenceRequest,
        path: str,
        fields: RequestHead,
        text: bytes,
    ) -> None:
        """Mark a response for the cache. Raises `RequestError` for unknown cache directives.

        These are refused also while the cache is off, so that clients do not fail once it is on.
        """
        if fields.caching is not None:
            check_words(fields.caching)
        if self.cache is not None:
            self.cache.consider(reply, asked, path, fields, text)

    async def look_first(
        self, asked: InferenceRequest, identity: Identity, reply: ClientResponse
    ) -> InferenceRequest | None:
        """Return the inspected request; None if the response cache answered it.

        A request with findings is never answered from the cache.
        """
        if self.plans.value.inspects:
            asked = await self.inspect(asked, identity, reply)
        use, cache = reply.cache_use, self.cache
        if use is None or cache is None or use.forbidden:
            return asked
        if use.asked is not asked:
            if asked.content is None or not asked.content.is_clean:
                return asked
            use.asked = asked
        return None if await cache.answer(use, identity, reply, self.limits) else asked

    async def begin(
        self, asked: InferenceRequest, identity: Identity, reply: ClientResponse
    ) -> CandidateQueue:
        """Return candidates to try, at least one. Raises the `RequestError` that says why not."""
        plan = self._plan(asked, identity, reply)
        if self.limits is not None:
            await self._count(self.limits, plan, reply)
        if plan.route.deadlines is not None:
            reply.total_s = plan.route.deadlines.total_s
        if not plan.route.later:
            return CandidateQueue(await self._wait_or_refuse(plan, asked, identity, reply))
        return await self._begin_stages(plan, asked, identity, reply)

    def go_on(
        self,
        tries: CandidateQueue,
        asked: InferenceRequest,
        identity: Identity,
        reply: ClientResponse,
    ) -> bool:
        """Enter the next stage that is due and can serve; return whether there is one."""
        for route in tries.plan.route.later:
            plan = tries.plan
            for cause in causes_of(plan.decision.verdicts):
                tries.record_cause(cause)
            if not is_due(route.after, tries.causes):
                continue
            turn = StageTurn(route, (*plan.earlier, plan.decision), tries.is_final)
            plan = self._plan(asked, identity, reply, turn)
            if not tries.is_final:
                self._demand(plan)
            if tries.enter_stage(plan) and not self._stands_behind(plan):
                return True
        return False

    async def _begin_stages(
        self,
        first: RoutingPlan,
        asked: InferenceRequest,
        identity: Identity,
        reply: ClientResponse,
    ) -> CandidateQueue:
        """Return the first stage that can serve now; if none, apply the policy's fallback."""
        tries = CandidateQueue(first)
        self._note(first)
        served = bool(first.decision.order) and not self._stands_behind(first)
        if served or self.go_on(tries, asked, identity, reply):
            return tries
        plan = self._plan(asked, identity, reply, StageTurn(first.route, is_final=True))
        if self._lines_up(plan):
            plan = await self._wait(plan, asked, identity, reply)
        tries = CandidateQueue(plan)
        tries.is_final = True
        if plan.decision.order or self.go_on(tries, asked, identity, reply):
            return tries
        raise self._refusal(_join_stages(first.route, tries.plan))

    def _stands_behind(self, plan: RoutingPlan) -> bool:
        """Return whether earlier requests wait for the first engine, which then get its time."""
        chosen = plan.decision.first_choice
        if chosen is None or plan.terms.rule.policy.otherwise is not InfeasibleAction.QUEUE:
            return False
        return chosen.candidate.internal and self.waiting.has_line(plan)

    async def _wait_or_refuse(
        self,
        plan: RoutingPlan,
        asked: InferenceRequest,
        identity: Identity,
        reply: ClientResponse,
    ) -> RoutingPlan:
        """Return a plan with at least one step; wait if the policy queues and waiting helps."""
        if self._lines_up(plan):
            plan = await self._wait(plan, asked, identity, reply)
        self._note(plan)
        if plan.decision.order:
            return plan
        raise self._refusal(plan)

    async def _wait(
        self,
        plan: RoutingPlan,
        asked: InferenceRequest,
        identity: Identity,
        reply: ClientResponse,
    ) -> RoutingPlan:
        """Wait in the queue; return a plan with capacity, or the last without.

        Raises `RequestError` if the queue has no place.
        """
        due_s = reply.opened_s + plan.terms.rule.queue_ms / 1e3
        turn = StageTurn(plan.route, plan.earlier, is_final=True) if plan.route.later else None
        again = partial(self._plan, asked, identity, reply, turn)
        since_s = self.clock.now_s()
        try:
            plan = await self.waiting.wait(plan, due_s, again)
        except QueueFull as full:
            self._note(plan)
            told = queue_refusal(plan, full.wait_s, hopeless=full.hopeless)
            reason = plan.decision.reason.value
            self.metering.refuse(plan, reason=reason, http_status=told.row.status)
            raise told from full
        return msgspec.structs.replace(plan, line_s=self.clock.now_s() - since_s)

    def _refusal(self, plan: RoutingPlan) -> RequestError:
        """Record that no target can serve the request, and return the client's error."""
        reason, short = plan.decision.reason, None
        if reason is Reason.BUDGET:
            tightest = self.admission.tightest(plan.identity, plan.model, plan.unaffordable)
            bound_pusd = plan.min_bound_pusd
            named, kind = plan.identity.named_tags, plan.request.kind
            error = over_budget(tightest, bound_pusd, kind, named=named)
            short = BudgetShortfall(tightest, bound_pusd)
        else:
            error = infeasible(plan)
        self.metering.refuse(plan, reason=reason.value, http_status=error.row.status, short=short)
        return error

    async def _count(self, limits: RateLimiter, plan: RoutingPlan, reply: ClientResponse) -> None:
        """Count the request on its rate limits, before it waits. Raises if one is exceeded."""
        reply.use = await limits.count(plan.identity, plan.model, counted_tokens(plan.request))
        over = None if reply.use is None else reply.use.counted.over
        if over is not None:
            self._note(plan)
            told, scope = rate_error(over), over.account.name
            self.metering.refuse(plan, reason="over_rate", http_status=told.row.status, scope=scope)
            raise told

    def _plan(
        self,
        asked: InferenceRequest,
        identity: Identity,
        reply: ClientResponse,
        turn: StageTurn | None = None,
    ) -> RoutingPlan:
        begun_s = 0.0 if reply.story is None else self.clock.now_s()
        make, id_, sticky = self.plans.value.plan, reply.request_id, self.sessions.target
        if turn is None:  # the usual case
            plan = make(id_, asked, identity, clock=self.clock, sticky=sticky)
        else:
            plan = make(id_, asked, identity, clock=self.clock, sticky=sticky, turn=turn)
        # Nothing is cut while a later stage may take the whole request.
        cuts = not plan.route.later or (turn is not None and turn.is_final)
        while (less := ask_less(plan, cuts=cuts)) is not None:
            plan = make(id_, less, identity, clock=self.clock, sticky=sticky, turn=turn)
        if reply.story is not None:
            reply.story.on_decided(begun_s, plan)
        return plan

    def _lines_up(self, plan: RoutingPlan) -> bool:
        """Return whether the request waits for capacity, or behind others of its engine."""
        decision = plan.decision
        if decision.otherwise is not InfeasibleAction.QUEUE:
            return False
        chosen = decision.first_choice
        if chosen is None:
            return decision.reason not in PERMANENT
        return chosen.candidate.internal and self.waiting.has_line(plan)

    def _note(self, plan: RoutingPlan) -> None:
        """Record policy notes and demand, once per request, however often it was planned."""
        self.metering.record_policy_notes(plan)
        self._demand(plan)

    def _demand(self, plan: RoutingPlan) -> None:
        """Record the demand, once per request and stage."""
        if self.demanded is not None:
            self.demanded.note(plan.decision, plan.request, plan.policy)


def _join_stages(first: RouteContext, last: RoutingPlan) -> RoutingPlan:
    """Return the decisions of all stages as one refusal, with each target's reason."""
    decisions = (*last.earlier, last.decision)
    verdicts = [verdict for decision in decisions for verdict in decision.verdicts]
    reason = main_reason(verdicts)
    decision = last.decision._replace(order=(), verdicts=tuple(verdicts), reason=reason)
    every = (first, *first.later)
    targets = {target.name: target for route in every for target in route.targets}
    return msgspec.structs.replace(
        last,
        route=replace(first, targets=tuple(targets.values())),
        decision=decision,
        frozen=(),
        earlier=(),
        decision_blob=pack_decision(last.request, last.policy, decision, None),
    )
