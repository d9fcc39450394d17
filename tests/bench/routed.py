"""The product's own policy in a replay: `router.decide`, with what the gateway learns live.

Output lengths, API latencies and the market are the estimators that workers and telemetry have.
Nothing is computed here but what `gateway.fleet.candidates` freezes for a real request.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil

from api_price import ApiPrice

from gateway.policies.rules import PENALTY_FACTOR
from gateway.whatif.replay import ReplayChoice, ReplayOutcome
from gateway.whatif.replay_engine import ReplayEngine
from gateway.whatif.traffic import Arrival
from router.bid_price import UNKNOWN_MARKET, DemandSums, DemandWindow, demand_of
from router.decide import decide
from router.estimates import LatencyTracker, OutputLengths
from router.estimator_rules import CONTEXT_MARGIN
from router.forecast import max_kv_tokens, work_of
from router.recheck import is_still_first
from router.request_kinds import RequestKind
from router.types import (  # fmt: skip
    ApiState,
    Candidate,
    Decision,
    OutputMoments,
    Policy,
    RoutingRequest,
)

POOL = "own"
API_CONTEXT_TOKENS = 1_000_000
CHAT = frozenset({RequestKind.CHAT})


@dataclass(frozen=True, slots=True)
class Terms:
    """One logical model: its policy (its penalty is by request), what the API charges, its cap."""

    policy: Policy
    price: ApiPrice
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Variant:
    """What is switched off or given away, to see what it is worth."""

    priced: bool = True  # the bid price
    known_lengths: bool = False  # an oracle of every output


class RoutedFleet:
    """One gateway in front of one pool and one API."""

    def __init__(self, terms: Mapping[str, Terms], variant: Variant = Variant()) -> None:
        self._terms = terms
        self._variant = variant
        self._lengths = OutputLengths()
        self._latencies = LatencyTracker()
        self._api = ApiState()
        self._demand = DemandSums()
        self._window = DemandWindow()
        self.market = UNKNOWN_MARKET
        self.last: Decision | None = None

    def choose(
        self, arrival: Arrival, seats: Sequence[ReplayEngine], now_s: float, worker: int
    ) -> ReplayChoice:
        terms = self._terms[arrival.model]
        request = self._request(arrival, terms)
        mean = request.output.mean
        if terms.max_tokens is not None:
            mean = min(mean, terms.max_tokens)
        dollars = terms.price.of(arrival.prompt_tokens, round(mean))
        candidates = [self._own(seat, dollars, now_s, worker) for seat in seats]
        candidates.append(self._external(dollars))
        policy = _with_penalty(terms.policy, PENALTY_FACTOR * dollars)
        decision = self.last = decide(request, policy, candidates)
        for demand in demand_of(decision, request, policy):
            self._demand.add(demand)
        chosen = decision.first_choice
        if chosen is None or chosen.candidate.engine is None:
            return ReplayChoice(None)
        seat = next(seat for seat in seats if seat.name == chosen.candidate.name)
        final = max_kv_tokens(work_of(request, policy), chosen.candidate)
        again = partial(is_still_first, request, policy, candidates, seat.name)
        return ReplayChoice(seat, chosen.kv_promise_tokens, final, stands=again)

    def on_ended(self, outcome: ReplayOutcome) -> None:
        arrival = outcome.arrival
        key = arrival.model, arrival.tenant
        self._lengths.observe(key, arrival.prompt_tokens, arrival.output_tokens)
        if outcome.engine is None:
            tpot_ms = 1000.0 * outcome.tpot_s if arrival.output_tokens > 1 else None
            self._latencies.observe(("api",), ttft_ms=1000.0 * outcome.ttft_s, tpot_ms=tpot_ms)

    def tick(self, seats: Sequence[ReplayEngine], now_s: float) -> None:
        if self._variant.priced:
            self.market = self._window.read(self._demand.sums(), now_s, engines=len(seats))
        ttft, tpot = self._latencies.ttft(("api",)), self._latencies.tpot(("api",))
        self._api = ApiState(
            ttft_median_ms=ttft[0], ttft_sigma=ttft[1], tpot_median_ms=tpot[0], tpot_sigma=tpot[1],
            observations=self._latencies.observations(("api",)),
        )  # fmt: skip

    def _request(self, arrival: Arrival, terms: Terms) -> RoutingRequest:
        prompt = arrival.prompt_tokens
        if self._variant.known_lengths:
            output = float(arrival.output_tokens)
            moments = OutputMoments(10**6, output, output * output, output)
        else:
            moments = self._lengths.moments((arrival.model, arrival.tenant), prompt)
        bound = ceil(CONTEXT_MARGIN * prompt)
        return RoutingRequest(
            RequestKind.CHAT, arrival.model, prompt, bound, terms.max_tokens, moments
        )

    def _own(self, seat: ReplayEngine, dollars: int, now_s: float, worker: int) -> Candidate:
        price, top, spread, tightest = self.market
        return Candidate(
            seat.name, POOL, frozenset(), CHAT, seat.shape.context_tokens, True, 0, 0, dollars,
            None, price, engine=seat.state(now_s, worker, tightest), top_density_pusd_per_s=top,
            density_spread=spread,
        )  # fmt: skip

    def _external(self, dollars: int) -> Candidate:
        return Candidate(
            "api", None, frozenset(), CHAT, API_CONTEXT_TOKENS, False, dollars, dollars,
            api=self._api,
        )  # fmt: skip


def _with_penalty(known: Policy, penalty_pusd: int) -> Policy:
    return Policy(
        known.name, known.slo, known.kv_headroom_floor, penalty_pusd, known.max_cost_pusd,
        known.otherwise, known.residency,
    )  # fmt: skip
