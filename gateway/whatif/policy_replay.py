"""Replay of one policy set: planned as in a worker, on engines in virtual time.

`RuleSet`, `CandidateBuilder` and `router.decide` are those of production. Only the views of targets
(`TargetViews`) and the clock differ, and nothing is sent. Output lengths are learned from earlier
ledger rows; API latencies, provider caches and bid prices during the replay, as after a first
start. Teams' hard budgets apply. Other budgets, rate limits and failures are not replayed, so
stages that wait for a failure are never used.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import ceil
from typing import NamedTuple

from gateway.clock import Clock
from gateway.config.settings import ModelSection, Settings
from gateway.fleet.candidates import CandidateBuilder, CandidateSnapshot, PromptCaches
from gateway.fleet.comparators import Comparator
from gateway.fleet.fleet import Target, later_prices
from gateway.fleet.partly_priced import bar_partly_priced
from gateway.fleet.provider_caches import NOTHING_CACHED, CachedPrompt
from gateway.policies.content_policy import apply_content
from gateway.policies.policy_match import PolicyChain, PolicyTerms
from gateway.policies.rules import CompiledPolicy, RuleSet
from gateway.request.limits.admission_queue import POLL_S
from gateway.whatif.pool_samples import PoolSample, PoolSamples
from gateway.whatif.replay import ReplayChoice, ReplayOutcome
from gateway.whatif.replay_budgets import ReplayBudgets, ReplayHold
from gateway.whatif.replay_caches import ReplayCaches, beginning_of_arrival
from gateway.whatif.replay_engine import EngineKnowledge, ReplayEngine
from gateway.whatif.replay_estimates import ReplayEstimates
from gateway.whatif.replay_fleet import ReplayFleet
from gateway.whatif.replay_prefixes import ReplayPrefixes
from gateway.whatif.replay_roles import leg_of
from gateway.whatif.replay_views import ReplayViews
from gateway.whatif.stickiness_cost import StickinessCost
from gateway.whatif.traffic import Arrival
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, tier_cost_pusd
from ledger.prices.modellimits import model_limits
from router.bid_price import DemandSums, DemandWindow, demand_of
from router.decide import decide
from router.estimates import LatencyTracker
from router.estimator_rules import CONTEXT_MARGIN
from router.forecast import max_kv_tokens, work_of
from router.reasons import PERMANENT, Reason
from router.request_kinds import RequestKind
from router.stages import StageCause, causes_of, is_due
from router.types import (
    Decision,
    InfeasibleAction,
    Policy,
    Residency,
    RoutingRequest,
    Slo,
    Verdict,
)


class ReplayDecision(NamedTuple):
    """Routing result of a request and its reason; `target` is empty if it was refused."""

    rule: str
    target: str
    reason: Reason
    price: Price | None = None
    held: ReplayHold | None = None
    own_pusd: int = 0  # charge if an own engine serves it
    expected_pusd: int | None = None  # of an API, at the decision
    request: RoutingRequest | None = None
    hit: CachedPrompt = NOTHING_CACHED  # tokens that an API charges as cached and written
    comparators: tuple[Comparator, ...] = ()
    tier: str = ""  # service tier that an API is asked for; "": the standard one


class StageDecision(NamedTuple):
    """Decision of one stage of a model's targets, with its inputs."""

    decision: Decision
    request: RoutingRequest
    policy: Policy
    rule: CompiledPolicy
    frozen: tuple[CandidateSnapshot, ...]


class PolicyReplay:
    """Replay of one policy set; `seats` are its own engines, empty at first."""

    def __init__(self, house: ReplayFleet, rules: Settings, seconds: float) -> None:
        self._house = house
        self._rules = RuleSet(rules)
        self.slos: dict[str, Slo] = {}  # by rule that matched a request
        self.broken = house.broken_under(rules)
        self.seats = [
            ReplayEngine(
                engine.name,
                house.shape_under(rules, engine),
                EngineKnowledge(),
                reads_for_others=engine.role == "prefill",
            )
            for engine in house.runtime.engines
            if engine.pool in house.engines
        ]
        self._pools = {engine.name: engine.pool for engine in house.runtime.engines}
        self._seats = {seat.name: seat for seat in self.seats}
        self._demands = {name: DemandSums() for name in house.engines}
        self._windows = {name: DemandWindow() for name in house.engines}
        self._purses = ReplayBudgets(house.settings.budgets)
        self.holding = StickinessCost()
        self._estimates = ReplayEstimates()
        for known in house.lengths:
            if (found := house.model(known.model)) is not None:
                self._estimates.recall(found[0], known)
        self._tracker = LatencyTracker()
        self._views = ReplayViews(house.runtime, self._seats)
        self._now_s = 0.0
        self._caches = ReplayCaches()
        names = [engine.name for engine in house.runtime.engines]
        self._prefixes = ReplayPrefixes(names, self._seats)
        self._candidates = CandidateBuilder(
            self._views,
            house.prices,
            stale_s=1.0,
            limits=model_limits(),
            caches=PromptCaches(self._prefixes.index, self._caches.forecast),
            overruns=house.overruns,
        )
        self._clock = Clock(lambda: self._now_s, self._wall_us)
        self._routes: dict[str, tuple[str, ModelSection, tuple[tuple[Target, ...], ...]]] = {}
        self._chains: dict[tuple[str, str, int], PolicyChain] = {}
        self._samples = PoolSamples(seconds, self._pools)

    @property
    def samples(self) -> Mapping[tuple[int, str], PoolSample]:
        return self._samples.found

    # -- a chooser of `replay`

    def choose(
        self, arrival: Arrival, _seats: Sequence[ReplayEngine], now_s: float, _worker: int
    ) -> ReplayChoice:
        self._now_s = now_s
        _, model, stages = self._route(arrival.model)
        made = [self._decide(arrival, 0, is_final=len(stages) == 1)]
        choice = self._serve(arrival, made[0])
        causes: set[StageCause] = set()
        for number, stage in enumerate(model.then, start=1):
            if choice is not None:
                break
            causes |= _causes_of(made[-1])
            if is_due([StageCause(word) for word in stage.causes], causes):
                made.append(self._decide(arrival, number, is_final=False))
                choice = self._serve(arrival, made[-1])
        last = made[-1]
        if choice is None and len(stages) > 1:
            last = self._decide(arrival, 0, is_final=True)
            choice = self._serve(arrival, last)
        decision, _, policy, rule, _ = last
        if choice is None:
            waited_ms = 1000.0 * (now_s - arrival.at_s)
            waits = decision.otherwise is InfeasibleAction.QUEUE
            if waits and decision.reason not in PERMANENT and waited_ms < rule.queue_ms:
                return ReplayChoice(None, again_s=POLL_S)
            told = ReplayDecision(policy.name, "", decision.reason)
            choice = ReplayChoice(None, refused=True, told=told)
        for each in made:
            self._note(each.decision, each.request, each.policy)
        return choice

    def _decide(self, arrival: Arrival, number: int, *, is_final: bool) -> StageDecision:
        """Decide one stage. Before the last one, no request waits or misses its promise."""
        name, model, stages = self._route(arrival.model)
        targets = stages[number]
        terms = self._terms(arrival, name, model, number)
        rule = terms.rule
        asked = self._request(arrival, name, model, terms)
        request = apply_content(asked, arrival.content, rule.policy.content, targets)
        priced_by = later_prices(model, stages, number)
        inside = (request.residency, rule.policy.residency) != (Residency.ANY, Residency.ANY)
        if priced_by and not inside:
            request = replace(request, spills=True)
        if arrival.api:
            self._caches.prepare(arrival, request.beginning, self._house.api_price(arrival.api))
        frozen = self._candidates.build(
            targets,
            request,
            priced_by if request.spills else model.compare_with,
            rooms_pusd=[self._purses.remaining_pusd(arrival.tenant, self._wall_us())]
            * len(targets),
            ceiling_pusd=rule.policy.max_cost_pusd,
            clock=self._clock,
        )
        request = bar_partly_priced(request, frozen, rule.policy.max_cost_pusd)
        offered = [entry.candidate for entry in frozen]
        policy = rule.priced(offered)
        if not is_final:
            policy = replace(policy, otherwise=InfeasibleAction.REJECT)
        return StageDecision(decide(request, policy, offered), request, policy, rule, frozen)

    def _serve(self, arrival: Arrival, made: StageDecision) -> ReplayChoice | None:
        """Run the request where the decision sends it, if anywhere."""
        name, model, _ = self._route(arrival.model)
        for place, verdict in enumerate(made.decision.order):
            choice = self._own_choice(arrival, made.request, verdict, made.frozen, made.rule)
            if choice is not None:
                self.holding.record_choice(name, arrival, made.decision.order, place)
                return self._with_comparators(choice, model, made.request)
        return None

    def on_ended(self, outcome: ReplayOutcome) -> None:
        arrival, choice = outcome.arrival, outcome.choice
        told = None if choice is None else choice.told
        if isinstance(told, ReplayDecision) and told.held is not None:
            told.held.settle(charged_pusd(outcome, told) or 0)
        if isinstance(told, ReplayDecision) and told.request is not None:
            self._learn_caches(outcome, told, told.request)
        name = self._route(arrival.model)[0]
        cut = choice is not None and choice.most_tokens == arrival.output_tokens
        self._estimates.observe((name, arrival.tenant), arrival, self._now_s, cut=cut)
        if outcome.engine is None and choice is not None:
            tpot_ms = 1000.0 * outcome.tpot_s if arrival.output_tokens > 1 else None
            ttft_ms = 1000.0 * (outcome.ttft_s - outcome.waited_s)
            self._tracker.observe((choice.api,), ttft_ms=ttft_ms, tpot_ms=tpot_ms)

    def tick(self, seats: Sequence[ReplayEngine], now_s: float) -> None:
        for name, window in self._windows.items():
            engines = sum(self._pools[seat.name] == name for seat in seats)
            market = window.read(self._demands[name].sums(), now_s, engines=engines)
            self._views.markets[name] = market
        self._views.learn(self._tracker)
        self._prefixes.fold()
        self._samples.add(now_s, self.seats, self._views.markets)

    # -- one request

    def _route(self, asked: str) -> tuple[str, ModelSection, tuple[tuple[Target, ...], ...]]:
        route = self._routes.get(asked)
        if route is None:
            found = self._house.model(asked)
            assert found is not None, "models were looked at before the first request"
            name, model = found
            route = self._routes[asked] = name, model, self._house.fleet.stages(name, model)
        return route

    def _terms(self, arrival: Arrival, name: str, model: ModelSection, number: int) -> PolicyTerms:
        """Return live hours and shares; a recorded request has no tags for conditions."""
        chain = self._chains.get((name, arrival.tenant, number))
        if chain is None:
            targets = self._route(arrival.model)[2][number]
            chain = PolicyChain(self._rules.entries(name, arrival.tenant), model, targets)
            self._chains[name, arrival.tenant, number] = chain
        wall_us = self._house.calendar.wall_us(arrival.at_s)
        key = f"{arrival.session or wall_us}:{arrival.tenant}"
        terms = chain.terms(partial(arrival.condition_input, name), wall_us=wall_us, key=key)
        policy = terms.rule.policy
        self.slos.setdefault(policy.name, policy.slo)
        return terms

    def _request(
        self, arrival: Arrival, name: str, model: ModelSection, terms: PolicyTerms
    ) -> RoutingRequest:
        prompt = arrival.estimate or arrival.prompt_tokens
        return RoutingRequest(
            RequestKind.CHAT,
            name,
            prompt,
            arrival.bound or ceil(CONTEXT_MARGIN * prompt),
            arrival.max_tokens,
            self._estimates.moments((name, arrival.tenant), prompt),
            residency=Residency.INTERNAL_ONLY if arrival.inside else Residency(model.residency),
            sticky_target=self.holding.target(name, arrival) if model.sticky == "session" else None,
            preferred=terms.preferred,
            barred=terms.barred,
            beginning=beginning_of_arrival(arrival),
            team=arrival.tenant,
            context_margin=self._estimates.margin((name, arrival.tenant)),
        )

    def _own_choice(
        self,
        arrival: Arrival,
        request: RoutingRequest,
        verdict: Verdict,
        frozen: Sequence[CandidateSnapshot],
        rule: CompiledPolicy,
    ) -> ReplayChoice | None:
        """Return the choice to run there; `None` if the engine would refuse its length."""
        candidate = verdict.candidate
        entry = next(snapshot for snapshot in frozen if snapshot.candidate is candidate)
        policy = rule.policy
        held = self._purses.hold(arrival.tenant, self._wall_us(), candidate.bound_pusd or 0)
        rate, seconds = entry.target.rate_pusd_per_hour, verdict.engine_seconds
        own = round((rate or 0) * (seconds or 0.0) / 3600)
        hit = self._caches.charged_hit(arrival, entry, request)
        told = ReplayDecision(
            policy.name, candidate.name, verdict.reason, entry.price, held, own,
            None if candidate.internal else candidate.expected_pusd, request, hit,
            tier=entry.asked_tier,
        )  # fmt: skip
        limits = [
            number for number in (request.max_tokens, candidate.output_cap) if number is not None
        ]
        if candidate.engine is None:
            most = min(limits, default=None)
            return ReplayChoice(
                None, api=candidate.name, slo=policy.slo, most_tokens=most, told=told
            )
        seat = self._seats[candidate.name]
        room = min(seat.shape.context_tokens, seat.shape.kv_capacity_tokens)
        if arrival.prompt_tokens >= room:
            if held is not None:
                held.settle(0)
            return None
        most = min((*limits, room - arrival.prompt_tokens))
        marks = request.beginning.marks
        self._prefixes.record_sent(entry.target.row, marks, entry.prefix_tokens, self._now_s)
        leg = leg_of(verdict, entry.target, self._seats)
        if leg is not None:
            self._prefixes.record_sent(leg.row, marks, leg.hit_tokens, self._now_s)
        final = max_kv_tokens(work_of(request, policy), candidate)
        return ReplayChoice(
            seat,
            verdict.kv_promise_tokens,
            final,
            slo=policy.slo,
            most_tokens=most,
            told=told,
            hit_tokens=candidate.engine.prefix_hit_tokens,
            leg=leg,
            best_effort=not verdict.feasible,
        )

    def _with_comparators(
        self, choice: ReplayChoice, model: ModelSection, request: RoutingRequest
    ) -> ReplayChoice:
        """Return the choice with what comparators would have cached of a known prefix."""
        told = choice.told
        if not request.beginning.marks or not isinstance(told, ReplayDecision):
            return choice
        found = self._candidates.comparators(model.compare_with, request, self._clock)
        return replace(choice, told=told._replace(comparators=found))

    def _learn_caches(
        self, outcome: ReplayOutcome, told: ReplayDecision, request: RoutingRequest
    ) -> None:
        """Record the prompt in the cache of the target that read it, from the first token on."""
        read_s = outcome.arrival.at_s + outcome.ttft_s
        if outcome.engine is not None:
            self._prefixes.record_released(outcome.engine, request.beginning.marks, self._now_s)
        elif request.beginning.marks:
            self._caches.record_answer(told.target, told.price, request, told.hit, read_s)
        self._caches.record_elsewhere(told.comparators, request, read_s)

    def _note(self, decision: Decision, request: RoutingRequest, policy: Policy) -> None:
        for demand in demand_of(decision, request, policy):
            self._demands[demand.pool].add(demand)

    def _wall_us(self) -> int:
        return self._house.start_us + int(1e6 * self._now_s)


def _causes_of(made: StageDecision) -> set[StageCause]:
    """Return why a stage did not answer; a feasible engine refused the length."""
    refused = {StageCause.CONTEXT} if made.decision.order else set()
    return causes_of(made.decision.verdicts) | refused


def charged_pusd(outcome: ReplayOutcome, told: ReplayDecision) -> int | None:
    """Return a replayed request's cost in pico-USD; `None` without an API price."""
    if outcome.engine is not None:
        return told.own_pusd
    if not told.target:
        return 0
    if told.price is None:
        return None
    arrival = outcome.arrival
    tokens = TokenCounts(input=arrival.prompt_tokens, output=arrival.output_tokens)
    split = told.hit.split(tokens, for_an_hour=False)
    return tier_cost_pusd(split, told.price, told.tier)[0]
