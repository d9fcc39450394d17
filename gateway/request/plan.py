"""Routing plans: the model, policy, decision and ordered candidates of one request.

Planning reads state and awaits nothing. `RoutePlanner.plan` may be called again for a request that
its policy queues: only the changing part of the candidates differs.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Protocol

import msgspec

from gateway.clock import Clock
from gateway.fleet.candidates import CandidateBuilder, CandidateSnapshot
from gateway.fleet.comparators import Comparator
from gateway.fleet.fleet import Target
from gateway.fleet.length_exchange import LengthExchange
from gateway.fleet.partly_priced import bar_partly_priced
from gateway.fleet.prefix_index import beginning_of
from gateway.fleet.provider_caches import CacheForecast
from gateway.kinds.inference_request import InferenceRequest
from gateway.kinds.service_tiers import named_tier
from gateway.kinds.thinking import asks_to_think
from gateway.policies.policy_match import PolicyTerms
from gateway.request.decision_states import SnapshotStates
from gateway.request.degraded_decider import DegradedDecider
from gateway.request.plan_facts import may_leave, residency_of, session_key, terms_of
from gateway.request.prompt_estimate import estimate_prompt, prompt_media
from gateway.request.routes import RouteCache, RouteContext
from gateway.request.stage_turns import StageTurn, note_of, pack_decision
from ledger.identity.keys import Identity
from router.content import ContentTerms
from router.estimates import OutputLengths
from router.policy import tighten
from router.reasons import Reason
from router.target_output import TargetOutput
from router.target_prompts import TargetPrompts
from router.token_ratio import TokenRatio
from router.types import Decision, InfeasibleAction, Policy, Residency, RoutingRequest, Verdict


class AttemptPlan(msgspec.Struct, frozen=True):
    """One candidate to try: its verdict, its snapshot and its budget scopes."""

    verdict: Verdict
    frozen: CandidateSnapshot
    scopes: tuple[str, ...]

    def fit_to_budget(self, room_pusd: int) -> "AttemptPlan | None":
        """Return this step with `max_tokens` cut to fit `room_pusd`; `None` if none fits."""
        frozen = self.frozen.fit_to_budget(room_pusd)
        if frozen is None:
            return None
        return AttemptPlan(self.verdict._replace(candidate=frozen.candidate), frozen, self.scopes)


class RoutingPlan(msgspec.Struct, frozen=True):
    """The plan of one request: model, policy, decision and ordered candidates.

    `route` is shared by all requests of its key and model; `frozen` is in the order of its targets.
    """

    request_id: str
    asked: InferenceRequest
    route: RouteContext
    request: RoutingRequest
    policy: Policy
    policy_version: str
    decision: Decision
    frozen: tuple[CandidateSnapshot, ...]
    comparators: tuple[Comparator, ...]
    sticky_key: str | None
    decision_blob: bytes
    terms: PolicyTerms
    states: SnapshotStates
    shadow: Decision | None = None  # of a shadow policy
    changed: bool = False  # the inputs of `decide` do not explain the plan
    line_s: float = 0.0  # how long the request waited in the admission queue
    earlier: tuple[Decision, ...] = ()  # of earlier stages, if the model has several

    @property
    def identity(self) -> Identity:
        return self.route.identity

    @property
    def model(self) -> str:
        """Return the logical model, with aliases resolved."""
        return self.route.model

    @property
    def learning_key(self) -> tuple[str, str]:
        """Return (model, team), the key of learned output lengths and bytes per token."""
        return self.route.learning_key

    def step(self, verdict: Verdict) -> AttemptPlan:
        """Return the attempt plan of a candidate in the decision's order."""
        candidate = verdict.candidate
        for frozen, scopes in zip(self.frozen, self.route.rooms.scopes, strict=True):
            if frozen.candidate is candidate:
                return AttemptPlan(verdict, frozen, scopes)
        raise LookupError(f"{candidate.name} is not a candidate of this plan")

    @property
    def steps(self) -> tuple[AttemptPlan, ...]:
        """Return the attempt plans of all candidates in order; dispatch makes them one by one."""
        return tuple([self.step(verdict) for verdict in self.decision.order])

    def with_attempt(self, step: AttemptPlan) -> "RoutingPlan":
        """Return a copy of the plan whose decision has this step, as it is sent."""
        known, changed = self.decision, step.verdict.candidate.name
        order, verdicts = (
            tuple(
                [
                    step.verdict if verdict.candidate.name == changed else verdict
                    for verdict in group
                ]
            )
            for group in (known.order, known.verdicts)
        )
        decision = known._replace(order=order, verdicts=verdicts)
        return self.with_decision(decision)

    def reduce_to(self, verdict: Verdict) -> "RoutingPlan":
        """Return the part of the plan that is needed once a candidate's answer begins."""
        best, known = self.best_own, self.decision
        verdicts = (verdict,) if best is None or best is verdict else (best, verdict)
        return msgspec.structs.replace(
            self,
            decision=known._replace(order=(verdict,), verdicts=verdicts),
            frozen=(),
            decision_blob=b"",
            shadow=None,
        )

    def with_decision(self, decision: Decision) -> "RoutingPlan":
        """Return a copy of the plan with another decision on the same candidates."""
        note = note_of(self.route, self.earlier)
        blob = pack_decision(self.request, self.policy, decision, note)
        return msgspec.structs.replace(self, decision=decision, decision_blob=blob, changed=True)

    @property
    def inputs(self) -> bytes:
        """Return the inputs of `decide`, to repeat the decision; empty if they are too long."""
        if self.changed:
            return b""
        candidates = [entry.candidate for entry in self.frozen]
        return self.states.inputs(self.request, self.policy, candidates)

    @property
    def residency(self) -> Residency:
        """Return the tightest residency by which the targets were chosen."""
        return tighten(self.request.residency, self.policy.residency)

    @property
    def best_own(self) -> Verdict | None:
        """Return the best own engine: a feasible one first, then the one with the least load."""
        verdicts = self.decision.verdicts
        if self.earlier:
            verdicts = tuple(chain(verdicts, *(decision.verdicts for decision in self.earlier)))
        own = [verdict for verdict in verdicts if verdict.candidate.internal]
        return min(own, key=_furthest, default=None)

    @property
    def unaffordable(self) -> tuple[Target, ...]:
        """Return the targets that are only out because of budgets."""
        names = {
            verdict.candidate.name
            for verdict in self.decision.verdicts
            if verdict.reason is Reason.BUDGET
        }
        return tuple(target for target in self.route.targets if target.name in names)

    @property
    def min_bound_pusd(self) -> int | None:
        """Return the request's cost bound at the cheapest target that a budget keeps out."""
        bounds = [
            verdict.candidate.bound_pusd
            for verdict in self.decision.verdicts
            if verdict.reason is Reason.BUDGET
        ]
        return min((bound for bound in bounds if bound is not None), default=None)


@dataclass(frozen=True, slots=True)
class LearnedEstimates:
    """Estimates learned from past requests, by model and team.

    They are bytes per token and output lengths. `target_output` has output that targets make beyond
    their limits or do not show. `target_prompts` has prompts that they bill beyond their bounds.
    `cached` forecasts providers' prompt caches. `exchange` sends lengths to the other workers.
    """

    ratio: TokenRatio
    outputs: OutputLengths
    target_output: TargetOutput = field(default_factory=TargetOutput)
    target_prompts: TargetPrompts = field(default_factory=TargetPrompts)
    cached: CacheForecast | None = None
    exchange: LengthExchange | None = None


class PlannerProtocol(Protocol):
    """A source of plans; implemented by `RoutePlanner` and in `gateway.batches`."""

    def plan(
        self,
        request_id: str,
        asked: InferenceRequest,
        identity: Identity,
        *,
        clock: Clock,
        sticky: Callable[[str], str | None],
        turn: StageTurn | None = None,
    ) -> RoutingPlan: ...

    def prompt_tokens(
        self, asked: InferenceRequest, identity: Identity, clock: Clock | None = None
    ) -> int: ...

    @property
    def inspects(self) -> bool:
        """Return whether a policy has rules for content."""

    def content_terms(
        self, request_id: str, asked: InferenceRequest, identity: Identity, clock: Clock
    ) -> tuple[ContentTerms, bool]: ...


class RoutePlanner:
    def __init__(
        self,
        policy_version: str,
        routes: RouteCache,
        candidates: CandidateBuilder,
        learned: LearnedEstimates,
        failsafe: DegradedDecider,
        *,
        picture_tokens: int,
    ) -> None:
        self.inspects = False  # until a rule for content is known
        self._version = policy_version
        self._routes = routes
        self._candidates = candidates
        self._learned = learned
        self._failsafe = failsafe
        self._picture_tokens = picture_tokens
        self._states = SnapshotStates()

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
        """Plan the first stage of a model, or the stage of `turn`.

        Raises `RequestError` 404 for an unknown model, 403 for one the key may not use.
        """
        route = self._routes.find(asked.model, identity, clock) if turn is None else turn.route
        sticky_key = target = None
        if route.is_sticky and asked.session is not None:
            sticky_key = session_key(route.model, identity, asked.session)
            target = sticky(sticky_key)
        ratio, key = self._learned.ratio, route.learning_key
        tokens = estimate_prompt(asked, ratio, key, self._picture_tokens)
        terms = route.chain.constant
        if terms is None:
            terms = terms_of(route, asked, tokens[0], request_id, clock)
        request = self._request(asked, route, tokens, terms, target)
        rule = terms.rule
        media = prompt_media(asked, ratio, key, self._picture_tokens)
        candidates = self._candidates.with_media(media)
        frozen = candidates.build(
            route.targets,
            request,
            route.valued_by if request.spills else route.compare_with,
            rooms_pusd=route.rooms.pusd(),
            ceiling_pusd=rule.policy.max_cost_pusd,
            clock=clock,
        )
        request = bar_partly_priced(request, frozen, rule.policy.max_cost_pusd)
        now_s, offered = clock.now_s(), [entry.candidate for entry in frozen]
        policy = rule.priced(offered)
        if route.later if turn is None else not turn.is_final:
            policy = replace(policy, otherwise=InfeasibleAction.REJECT)
        decision, static = self._failsafe.decide(request, policy, offered, now_s)
        shadow = None
        earlier = () if turn is None else turn.earlier
        if terms.shadow is not None and not static:
            shadow = self._decide_shadow(terms.shadow, request, frozen, now_s)
        return RoutingPlan(
            request_id,
            asked,
            route,
            request,
            policy,
            self._version,
            decision,
            frozen,
            candidates.comparators(route.compare_with, request, clock),
            sticky_key,
            pack_decision(request, policy, decision, note_of(route, earlier)),
            terms,
            self._states,
            shadow,
            static,
            earlier=earlier,
        )

    def content_terms(
        self, request_id: str, asked: InferenceRequest, identity: Identity, clock: Clock
    ) -> tuple[ContentTerms, bool]:
        """Return the policy's content terms, and whether the request stays inside in any case."""
        route = self._routes.find(asked.model, identity)
        terms = route.chain.constant
        if terms is None:
            tokens = self.prompt_tokens(asked, identity)
            terms = terms_of(route, asked, tokens, request_id, clock)
        return terms.rule.policy.content, not may_leave(route, asked, terms)

    def prompt_tokens(
        self, asked: InferenceRequest, identity: Identity, clock: Clock | None = None
    ) -> int:
        """Return the estimated tokens of a prompt. Raises `RequestError` as `plan` does.

        Without a clock, retired models count as served.
        """
        route = self._routes.find(asked.model, identity, clock)
        ratio, key = self._learned.ratio, route.learning_key
        return estimate_prompt(asked, ratio, key, self._picture_tokens)[0]

    def _request(
        self,
        asked: InferenceRequest,
        route: RouteContext,
        tokens: tuple[int, int],
        terms: PolicyTerms,
        sticky: str | None,
    ) -> RoutingRequest:
        estimate, bound = tokens
        residency, kept_for = residency_of(route, asked, terms)
        return RoutingRequest(
            asked.kind,
            route.model,
            estimate,
            bound,
            asked.max_tokens,
            self._learned.outputs.moments(route.learning_key, estimate),
            asked.n * asked.prompts,  # every prompt of a list gets its own choices
            asked.features,
            residency,
            sticky,
            route.salt is not None,
            asked.extent,
            terms.preferred,
            terms.barred,
            beginning_of(asked, route.salt),
            asked.has_sound,
            asked.without_pictures,
            named_tier(asked),
            asked.text_prompt,
            asks_to_think(asked.members),
            asked.searches_limit,
            route.learning_key[1],
            bool(route.valued_by) and not kept_for and may_leave(route, asked, terms),
            kept_for,
            self._learned.ratio.margin(route.learning_key),
        )

    def _decide_shadow(
        self,
        terms: PolicyTerms,
        request: RoutingRequest,
        frozen: tuple[CandidateSnapshot, ...],
        now_s: float,
    ) -> Decision | None:
        """Return a shadow policy's decision on the same candidates with the same cost cap."""
        asked = replace(request, preferred=terms.preferred, barred=terms.barred)
        asked = bar_partly_priced(asked, frozen, terms.rule.policy.max_cost_pusd)
        offered = [entry.candidate for entry in frozen]
        decision, static = self._failsafe.decide(asked, terms.rule.priced(offered), offered, now_s)
        return None if static else decision


def _furthest(verdict: Verdict) -> tuple[bool, bool, float]:
    return not verdict.feasible, verdict.load is None, verdict.load or 0.0
