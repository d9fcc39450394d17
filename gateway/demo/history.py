"""Month of the demo in virtual time: demand, the real router, simulated engines.

The outcome is not scripted: `router.decide` decides each request of `demand.month` on the state of
simulated engines at that time. It runs there or at a simulated API and writes the gateway's usual
journal records. All records are marked as simulated and tagged `replayed`. Prices are the real ones
in force at the end of the month.
"""

import heapq
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from backends.simulator.latency import Latency
from gateway.config.settings import ModelSection, Settings, version
from gateway.demo.demand import DemoArrival, month
from gateway.demo.replay_fleet import DemoFleet, DemoFlight, DemoReplica
from gateway.demo.replay_records import (
    DemoCaller,
    DemoRequest,
    DemoResult,
    api_result,
    opened_record,
    own_result,
    refused_record,
    settled_record,
)
from gateway.policies.rules import PENALTY_FACTOR, RuleSet
from ledger.fleet.samples import FleetSample
from ledger.journals.records import Record, Status
from ledger.prices.book import PriceBook
from router.decide import decide
from router.estimates import LatencyTracker, OutputLengths
from router.forecast import kv_promise_tokens, work_of
from router.request_kinds import RequestKind
from router.types import Candidate, Residency, RoutingRequest, TargetHealth, Verdict

SAMPLE_S = 600.0
OUTAGE_S = 3600.0
OUTAGE_AT = 0.63  # share of the month: one replica is down for an hour


@dataclass(frozen=True, slots=True)
class DemoScenario:
    settings: Settings
    prices: PriceBook
    callers: Mapping[str, DemoCaller]  # by the demand's team names
    now_us: int
    days: int = 30
    requests: int = 32_000


@dataclass(slots=True)
class DemoHistory:
    """Records in the order of settling; each attempt's open record is right before its settle."""

    records: list[Record] = field(default_factory=list)
    samples: list[FleetSample] = field(default_factory=list)


def replay(scenario: DemoScenario, rng: random.Random) -> DemoHistory:
    """Replay the month; equal scenario and seed give equal histories."""
    return _Replay(scenario, rng).run()


class _Replay:
    def __init__(self, scenario: DemoScenario, rng: random.Random) -> None:
        self._scenario = scenario
        self._settings = scenario.settings
        self._rng = rng
        self._rules = RuleSet(scenario.settings)
        self._version = version(scenario.settings)
        self._fleet = DemoFleet(scenario.settings, scenario.prices, scenario.now_us)
        self._outputs = OutputLengths()
        self._latencies = LatencyTracker()
        self._latency = Latency()
        self._history = DemoHistory()
        self._asked: dict[str, DemoRequest] = {}
        self._moves: list[tuple[float, int, Callable[[float], None]]] = []  # hang-ups, outage, ...
        self._count = 0

    def run(self) -> DemoHistory:
        scenario = self._scenario
        end_s = scenario.now_us / 1e6
        start_s = end_s - scenario.days * 86_400.0
        down_s = start_s + OUTAGE_AT * (end_s - start_s)
        if len(self._fleet.replicas) > 1:
            self._later(down_s, self._fail)
            self._later(down_s + OUTAGE_S, self._recover)
        self._later(start_s + SAMPLE_S, self._sample)
        arrivals = month(self._rng, end_s=end_s, days=scenario.days, requests=scenario.requests)
        for number, arrival in enumerate(arrivals):
            self._advance_until(arrival.at_s)
            self._route_request(number, arrival)
        self._advance_until(end_s)
        self._advance(math.inf)  # let requests that began in the month end
        return self._history

    def _later(self, at_s: float, move: Callable[[float], None]) -> None:
        self._count += 1
        heapq.heappush(self._moves, (at_s, self._count, move))

    def _advance_until(self, until_s: float) -> None:
        """Advance the time, with all events until then."""
        while self._moves and self._moves[0][0] <= until_s:
            at_s, _, move = heapq.heappop(self._moves)
            self._advance(at_s)
            move(at_s)
        self._advance(until_s)

    def _advance(self, until_s: float) -> None:
        for replica in self._fleet.replicas:
            for flight in replica.advance(until_s):
                self._settle_own(replica, flight, "finished")

    def _route_request(self, number: int, arrival: DemoArrival) -> None:
        model = self._settings.models[arrival.team.model]
        if not isinstance(model, ModelSection):
            raise TypeError(f"the demand asks for a pass-through model: {arrival.team.model}")
        request = self._request(arrival, model)
        rule = self._rules.match(arrival.team.model, self._caller(arrival).team_id)
        candidates = self._fleet.candidates(model, request, self._latencies, arrival.at_s)
        policy = rule.policy
        if rule.penalty_is_default:
            policy = replace(policy, penalty_pusd=PENALTY_FACTOR * _dearest(candidates))
        decision = decide(request, policy, candidates)
        asked = DemoRequest(
            number,
            arrival,
            self._caller(arrival),
            request,
            policy,
            decision,
            self._fleet.comparators(model),
        )
        chosen = decision.first_choice
        if chosen is None:
            self._history.records.append(refused_record(asked))
        elif chosen.candidate.engine is not None:
            self._dispatch_own(asked, chosen)
        else:
            self._run_api(asked, chosen)

    def _request(self, arrival: DemoArrival, model: ModelSection) -> RoutingRequest:
        """Return the routing request; its token estimate is a few percent off, as in reality."""
        estimate = max(1, round(arrival.prompt_tokens * self._rng.uniform(0.95, 1.05)))
        key = (arrival.team.model, arrival.team.name)
        return RoutingRequest(
            kind=RequestKind.CHAT,
            model=arrival.team.model,
            prompt_tokens=estimate,
            prompt_tokens_bound=math.ceil(1.2 * estimate),
            max_tokens=arrival.max_tokens,
            output=self._outputs.moments(key, estimate),
            residency=Residency(model.residency),
        )

    def _caller(self, arrival: DemoArrival) -> DemoCaller:
        return self._scenario.callers[arrival.team.name]

    def _dispatch_own(self, asked: DemoRequest, chosen: Verdict) -> None:
        replica = self._fleet.by_name[chosen.candidate.name]
        arrival = asked.arrival
        work = work_of(asked.request, asked.policy)
        engine = chosen.candidate.engine
        assert engine is not None
        promised = kv_promise_tokens(work, chosen.candidate, engine)
        self._asked[asked.id] = asked
        replica.submit(asked.id, arrival, chosen, promised)
        if arrival.patience is not None:
            answer_s = (chosen.ttft_ms or 0.0) + arrival.output_tokens * (chosen.tpot_ms or 0.0)
            self._later(
                arrival.at_s + arrival.patience * answer_s / 1e3,
                lambda at_s: self._hang_up(replica, asked.id, at_s),
            )

    def _hang_up(self, replica: DemoReplica, request_id: str, at_s: float) -> None:
        flight = replica.abort(request_id, at_s)
        if flight is not None:
            self._settle_own(replica, flight, "client_gone")

    def _fail(self, at_s: float) -> None:
        replica = self._fleet.replicas[0]
        for flight in replica.fail(at_s):
            self._settle_own(replica, flight, "upstream_error")

    def _recover(self, _at_s: float) -> None:
        self._fleet.replicas[0].health = TargetHealth.HEALTHY

    def _sample(self, at_s: float) -> None:
        self._history.samples += [replica.sample(at_s) for replica in self._fleet.replicas]
        self._later(at_s + SAMPLE_S, self._sample)

    def _settle_own(self, replica: DemoReplica, flight: DemoFlight, status: Status) -> None:
        asked = self._asked.pop(flight.id)
        self._book(asked, flight.chosen, own_result(replica, flight, status))
        if status == "finished":
            key = (asked.arrival.team.model, asked.arrival.team.name)
            self._outputs.observe(key, asked.arrival.prompt_tokens, flight.generated)

    def _run_api(self, asked: DemoRequest, chosen: Verdict) -> None:
        api = self._fleet.apis[chosen.candidate.name]
        ttft_s, tpot_s = self._latency.draw(self._rng)
        self._book(asked, chosen, api_result(api, asked.arrival, ttft_s, tpot_s))
        self._latencies.observe((api.name,), ttft_ms=1e3 * ttft_s, tpot_ms=1e3 * tpot_s)

    def _book(self, asked: DemoRequest, chosen: Verdict, result: DemoResult) -> None:
        """Append the attempt's open and settle records."""
        self._history.records += [
            opened_record(asked, chosen, self._fleet, self._version),
            settled_record(asked, result),
        ]


def _dearest(candidates: tuple[Candidate, ...]) -> int:
    """Return the cost at the most expensive priced candidate, the base of the default penalty."""
    return max((c.expected_pusd or c.avoided_pusd for c in candidates), default=0)
