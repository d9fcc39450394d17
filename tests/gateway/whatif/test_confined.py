"""A class that may not leave, at four times the engine's capacity, in virtual time.

It asks for as much as one engine can do; three times as much comes beside it, which an API would
take. Refused it is lost, so its worth is the comparator's price and the penalty of a refusal: it
is not to starve when the price of an engine-second rises. The control is the same traffic whose
quarter may leave as the rest: then nobody prefers it.
"""

import random
from itertools import accumulate, repeat

from api_price import ApiPrice
from routed import RoutedFleet, Terms

from backends.simulator.latency import Latency
from backends.simulator.profiles import PROFILES
from gateway.whatif.apis import draw_latencies
from gateway.whatif.replay import Replay
from gateway.whatif.replay_engine import EngineKnowledge, ReplayEngine
from gateway.whatif.traffic import Arrival
from router.types import Policy, Residency, Slo

SHAPE = PROFILES["h100-llama-3.1-8b-fp8"].shape
SLO = Slo(ttft_ms=500.0, tpot_ms=50.0, attainment=0.99)
PRICE = ApiPrice(150_000, 600_000)
CAPACITY_RPS, TIMES, SECONDS, SHARE = 14.1, 4.0, 60.0, 0.25
SETTLED_S = 10.0  # the market looks back for 30 s, and begins without a past
INSIDE, PUBLIC = "inside", "public"


def arrivals(rng: random.Random) -> list[Arrival]:
    """Chat: lognormal prompts about a thousand tokens, answers about 130."""
    gaps = (rng.expovariate(TIMES * CAPACITY_RPS) for _ in repeat(None))
    found = []
    for at_s in accumulate(gaps):
        if at_s >= SECONDS:
            return found
        prompt = min(6000, max(16, round(rng.lognormvariate(6.9, 0.85))))
        output = min(800, max(4, round(rng.lognormvariate(4.9, 0.77))))
        model = INSIDE if rng.random() < SHARE else PUBLIC
        found.append(Arrival(at_s, prompt, output, model, model))
    raise AssertionError


def played(*, confined: bool) -> tuple[float, float, float]:
    """Shares inside the promise: of the class on own engines, of all own answers; own share."""
    asked = arrivals(random.Random(7))
    residency = Residency.INTERNAL_ONLY if confined else Residency.ANY
    policies = {
        INSIDE: Policy(INSIDE, SLO, kv_headroom_floor=0.05, residency=residency),
        PUBLIC: Policy(PUBLIC, SLO, kv_headroom_floor=0.05),
    }
    terms = {name: Terms(policy, PRICE, 8192) for name, policy in policies.items()}
    seats = [ReplayEngine("pool:own/0", SHAPE, EngineKnowledge())]
    latencies = draw_latencies(len(asked), Latency(), 7)
    slos = dict.fromkeys(terms, SLO)
    outcomes = Replay(seats, slos, asked, latencies, EngineKnowledge()).run(RoutedFleet(terms))
    own = [outcome for outcome in outcomes if outcome.engine is not None]
    inside = [
        outcome
        for outcome in outcomes
        if outcome.arrival.model == INSIDE and outcome.arrival.at_s > SETTLED_S
    ]
    served = sum(item.engine is not None and item.has_met_slo(SLO) for item in inside)
    kept = sum(item.has_met_slo(SLO) for item in own)
    return served / len(inside), kept / len(own), len(own) / len(outcomes)


def test_it_is_served_first_and_keeps_its_promise() -> None:
    share, kept, own = played(confined=True)
    free, _, alike = played(confined=False)
    print(f"\nconfined: {share:.3f} of it served inside, {kept:.3f} of own kept, own {own:.3f}; "
          f"as the rest: {free:.3f}, own {alike:.3f}")  # fmt: skip
    assert kept >= 0.99
    assert share >= 0.92
    assert free < 0.6
