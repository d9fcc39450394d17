"""Targets of the demo in virtual time: simulated replicas and APIs as candidates.

An engine's state is what a gateway would know: its own requests by dead reckoning. The simulated
engine's real state is read only where the gateway's scrape would show it.
"""

import math
from dataclasses import dataclass, replace

from backends.simulator.model import SimulatedEngine
from backends.simulator.profiles import PROFILES
from backends.simulator.shape import SequenceEventKind
from gateway.config.machines import MachineShare, machine_shares
from gateway.config.settings import ModelSection, Settings
from gateway.config.step_promises import PoolSteps, started_steps
from gateway.demo.demand import DemoArrival
from gateway.fleet.attempt_bounds import (
    api_bound_pusd,
    expected_tokens,
    output_bound,
    own_bound_pusd,
)
from gateway.fleet.candidates import API_CONTEXT_TOKENS
from gateway.fleet.target_views import is_crowded
from ledger.fleet.samples import PPM, FleetSample
from ledger.money import usd_to_pusd
from ledger.prices.book import Price, PriceBook, cost_pusd
from router.estimates import LatencyTracker
from router.request_kinds import DECODED_KINDS
from router.types import (
    ApiState,
    Candidate,
    EngineState,
    Feature,
    RoutingRequest,
    StepModel,
    TargetHealth,
    Verdict,
)

RATE_WINDOW_S = 5.0
EVERYTHING = frozenset(Feature)


@dataclass(slots=True)
class DemoFlight:
    """Request in an engine; times are epoch seconds."""

    id: str
    arrival: DemoArrival
    chosen: Verdict
    started_s: float
    promised: int
    cached: int = 0
    generated: int = 0
    first_s: float | None = None
    end_s: float = math.inf
    preemptions: int = 0


class DemoReplica:
    """Simulated engine with the requests that the gateway sent to it."""

    def __init__(self, name: str, settings: Settings, pool_name: str, part: MachineShare) -> None:
        pool = settings.pools[pool_name]
        profile = PROFILES[pool.engine.model or ""]
        self.name = name
        self.pool = pool_name
        rate = part.pusd_per_hour
        self.rate_pusd_per_hour = None if rate is None else rate * pool.gpu.count
        self.bid_price_pusd_per_s = float(usd_to_pusd(pool.bid_price_usd_per_s))
        self.features = frozenset(Feature(feature) for feature in pool.engine.features)
        steps = started_steps(settings, pool_name, PoolSteps.of(profile.shape))
        self.shape = replace(
            profile.shape,
            max_num_seqs=steps.max_num_seqs,
            prefill_budget_tokens=steps.budget_tokens,
        )
        self.context_tokens = pool.engine.context_tokens or profile.shape.context_tokens
        self.health = TargetHealth.HEALTHY
        step = profile.shape.step
        self.step = StepModel(step.a_s, step.b_s, step.c_s, step.d_s, step.t0_s)
        self._engine = SimulatedEngine(self.shape)
        self._flights: dict[str, DemoFlight] = {}
        self._promised = 0
        self._prefill_rate = 0.0  # tokens/s, exponentially weighted over seconds
        self._rate_s = 0.0
        self._busy_s = 0.0

    def submit(self, request_id: str, arrival: DemoArrival, chosen: Verdict, promised: int) -> None:
        """Dispatch a request; the replica must have been advanced to its arrival."""
        flight = DemoFlight(request_id, arrival, chosen, arrival.at_s, promised)
        self._flights[request_id] = flight
        self._promised += promised
        self._prefill_rate = (
            self._decayed_rate(arrival.at_s) + arrival.prompt_tokens / RATE_WINDOW_S
        )
        self._rate_s = arrival.at_s
        self._engine.submit(
            request_id,
            arrival.at_s,
            prompt_tokens=arrival.prompt_tokens,
            output_tokens=arrival.output_tokens,
            hashes=arrival.hashes,
        )

    def advance(self, until_s: float) -> list[DemoFlight]:
        """Advance the time; return the requests that finished."""
        finished: list[DemoFlight] = []
        for event in self._engine.advance(until_s):
            flight = self._flights[event.id]
            if event.what is SequenceEventKind.ADMITTED:
                flight.cached = max(flight.cached, event.cached)
            elif event.what is SequenceEventKind.FIRST:
                flight.first_s = event.at_s
            elif event.what is SequenceEventKind.PREEMPTED:
                flight.preemptions += 1
            elif event.what is SequenceEventKind.FINISHED:
                flight.generated, flight.end_s = event.generated, event.at_s
                self._remove_flight(flight)
                finished.append(flight)
        return finished

    def abort(self, request_id: str, at_s: float) -> DemoFlight | None:
        """Stop a request that is still running; return it, or `None` if it has ended."""
        flight = self._flights.get(request_id)
        if flight is None:
            return None
        flight.generated = self._engine.abort(request_id) or 0
        flight.end_s = at_s
        self._remove_flight(flight)
        return flight

    def fail(self, at_s: float) -> list[DemoFlight]:
        """Take the replica down; return the requests that it loses."""
        self.health = TargetHealth.DOWN
        lost = [self.abort(request_id, at_s) for request_id in list(self._flights)]
        self._engine.reset_prefix_cache()
        return [flight for flight in lost if flight is not None]

    def state(self, at_s: float) -> EngineState:
        engine, shape = self._engine, self.shape
        context, queued = engine.context_tokens, engine.queued_prefill_tokens
        state = EngineState(
            health=self.health,
            step=self.step,
            running=len(self._flights),
            waiting=0,
            context_tokens=float(context),
            queued_prefill_tokens=float(queued),
            kv_capacity_tokens=shape.kv_capacity_tokens,
            kv_used_tokens=float(context + queued),
            kv_promised_tokens=float(max(0, self._promised - context - queued)),
            kv_block_tokens=shape.block_tokens,
            max_num_seqs=shape.max_num_seqs,
            prefill_budget_tokens=shape.prefill_budget_tokens,
            prefill_rate_tokens_per_s=self._decayed_rate(at_s),
        )
        return replace(state, residents=self._residents()) if is_crowded(state) else state

    def _residents(self) -> tuple[tuple[float, float, float], ...]:
        """Return the decoding sequences; one beyond its promised size grows by a block."""
        block = self.shape.block_tokens
        promised = (
            (held, self._flights[name].promised) for name, held in self._engine.held_tokens()
        )
        return tuple(
            (float(held), float(final if held <= final else held + block), 0.0)
            for held, final in promised
        )

    def sample(self, at_s: float) -> FleetSample:
        engine, totals = self._engine, self._engine.totals
        busy_s, self._busy_s = totals.busy_s - self._busy_s, totals.busy_s
        queries = totals.prefix_queries
        return FleetSample(
            at_us=round(at_s * 1e6),
            pool=self.pool,
            engine=self.name,
            health=self.health.value,
            running=engine.running,
            waiting=engine.waiting,
            kv_usage_ppm=round(engine.kv_usage_ratio * PPM),
            kv_promised_ppm=round(self._promised / self.shape.kv_capacity_tokens * PPM),
            prompt_tokens_total=totals.prompt_tokens,
            output_tokens_total=totals.generation_tokens,
            preemptions_total=totals.preemptions,
            prefix_hit_ppm=round(totals.prefix_hits / queries * PPM) if queries else None,
            busy_us=round(busy_s * 1e6),
            step_feedback_ppm=PPM,
            bid_price_pusd_per_s=round(self.bid_price_pusd_per_s),
            simulated=True,
        )

    def _decayed_rate(self, at_s: float) -> float:
        return self._prefill_rate * math.exp(-(at_s - self._rate_s) / RATE_WINDOW_S)

    def _remove_flight(self, flight: DemoFlight) -> None:
        del self._flights[flight.id]
        self._promised -= flight.promised


@dataclass(frozen=True, slots=True)
class DemoApi:
    name: str
    provider: str
    upstream_model: str
    price: Price | None


class DemoFleet:
    """All targets of the settings, with prices of one time."""

    def __init__(self, settings: Settings, prices: PriceBook, at_us: int) -> None:
        self._settings = settings
        paid = machine_shares(settings)
        self.replicas = [
            DemoReplica(f"pool:{name}/{index}", settings, name, paid[name])
            for name, pool in settings.pools.items()
            for index in range(pool.engine.replicas)
        ]
        self.by_name = {replica.name: replica for replica in self.replicas}
        self.apis: dict[str, DemoApi] = {}
        self._comparators: dict[tuple[str, ...], tuple[Price, ...]] = {}
        for model in settings.models.values():
            if not isinstance(model, ModelSection):
                continue
            priced = (prices.find(name, at_us) for name in model.compare_with)
            self._comparators[model.compare_with] = tuple(p for p in priced if p is not None)
            for target in model.reachable:
                provider, _, upstream = target.partition("/")
                if provider in settings.providers:
                    section = settings.providers[provider]
                    price = prices.find(section.price_name(target), at_us)
                    biller = section.sends_bills(provider)
                    self.apis[target] = DemoApi(target, biller, upstream, price)

    def served_name(self, candidate: Candidate) -> str:
        """Return the name of an own engine's model."""
        pool = candidate.pool or ""
        return self._settings.pools[pool].engine.served_name or pool

    def comparators(self, model: ModelSection) -> tuple[Price, ...]:
        return self._comparators[model.compare_with]

    def candidates(
        self, model: ModelSection, request: RoutingRequest, latencies: LatencyTracker, at_s: float
    ) -> tuple[Candidate, ...]:
        """Return every target of the model as a candidate at this time."""
        tokens = expected_tokens(request)
        avoided = min((cost_pusd(tokens, price) for price in self.comparators(model)), default=0)
        found: list[Candidate] = []
        for target in model.targets:
            if target.startswith("pool:"):
                found += [
                    _own(replica, request, avoided, at_s)
                    for replica in self.replicas
                    if replica.pool == target[5:]
                ]
            else:
                found.append(_api(self.apis[target], request, latencies))
        return tuple(found)


def _own(replica: DemoReplica, request: RoutingRequest, avoided: int, at_s: float) -> Candidate:
    state = replica.state(at_s)
    return Candidate(
        name=replica.name,
        pool=replica.pool,
        features=replica.features,
        kinds=DECODED_KINDS,
        context_tokens=replica.context_tokens,
        internal=True,
        expected_pusd=0,
        bound_pusd=own_bound_pusd(
            replica.rate_pusd_per_hour, state, request, output_bound(request)
        ),
        avoided_pusd=avoided,
        bid_price_pusd_per_s=replica.bid_price_pusd_per_s,
        engine=state,
    )


def _api(api: DemoApi, request: RoutingRequest, latencies: LatencyTracker) -> Candidate:
    price = api.price
    expected = bound = None
    if price is not None:
        expected = cost_pusd(expected_tokens(request), price)
        bound = api_bound_pusd(price, request, output_bound(request))
    ttft_ms, ttft_sigma = latencies.ttft((api.name,))
    tpot_ms, tpot_sigma = latencies.tpot((api.name,))
    return Candidate(
        name=api.name,
        pool=None,
        features=EVERYTHING,
        kinds=DECODED_KINDS,
        context_tokens=API_CONTEXT_TOKENS,
        internal=False,
        expected_pusd=expected,
        bound_pusd=bound,
        api=ApiState(
            ttft_median_ms=ttft_ms,
            ttft_sigma=ttft_sigma,
            tpot_median_ms=tpot_ms,
            tpot_sigma=tpot_sigma,
            observations=latencies.observations((api.name,)),
        ),
    )
