"""The product's decision in virtual time: what the price, the loops and the lengths are worth."""

import random
from dataclasses import replace

import pytest
from api_price import ApiPrice
from routed import RoutedFleet, Terms, Variant

from backends.simulator.latency import Latency
from gateway.whatif.apis import draw_latencies
from gateway.whatif.replay import Replay, ReplayOutcome
from gateway.whatif.replay_engine import EngineKnowledge, ReplayEngine
from gateway.whatif.traffic import Arrival
from router.types import Policy, Slo

POLICY = Policy("test", Slo(ttft_ms=500.0, tpot_ms=50.0, attainment=0.99), 0.05)
TERMS = {
    "dear": Terms(POLICY, ApiPrice(2_500_000, 10_000_000), 2048),
    "cheap": Terms(POLICY, ApiPrice(50_000, 100_000), 2048),
}


def run(shape, arrivals, variant=None, knowledge=None, engines=1):
    knowledge = knowledge or EngineKnowledge()
    seats = [ReplayEngine(f"pool:own/{place}", shape, knowledge) for place in range(engines)]
    slos = {name: item.policy.slo for name, item in TERMS.items()}
    routed = RoutedFleet(TERMS, variant or Variant())
    replay = Replay(seats, slos, arrivals, draw_latencies(len(arrivals), Latency(), 1), knowledge)
    return replay.run(routed), routed


def kept(outcomes: list[ReplayOutcome]) -> list[ReplayOutcome]:
    return [
        outcome
        for outcome in outcomes
        if outcome.engine is not None and outcome.has_met_slo(POLICY.slo)
    ]


def avoided(outcomes: list[ReplayOutcome]) -> int:
    return sum(
        TERMS[kept_value.arrival.model].price.of(
            kept_value.arrival.prompt_tokens, kept_value.arrival.output_tokens
        )
        for kept_value in kept(outcomes)
    )


def test_slack_stays_on_the_engine_and_costs_nothing(shape, poisson) -> None:
    outcomes, routed = run(shape, poisson(3.0, 300, ("cheap",)))
    assert len(kept(outcomes)) == len(outcomes) == 300
    assert routed.market.bid_price == 0.0


def test_under_overload_the_price_keeps_the_engine_for_who_is_dear(shape, poisson) -> None:
    arrivals = poisson(50.0, 2500, ("dear", "cheap", "cheap"))
    priced, routed = run(shape, arrivals)
    greedy, _ = run(shape, arrivals, Variant(priced=False))
    own = [price for price in priced if price.engine is not None]
    assert len(kept(priced)) >= 0.97 * len(own)  # from an empty engine into threefold overload
    assert routed.market.bid_price > 0.0
    assert routed.market.density_spread > 2.5
    assert avoided(priced) > 1.1 * avoided(greedy)


def test_an_oracle_of_lengths_is_used_and_the_same_seed_is_the_same_run(shape, poisson) -> None:
    arrivals = poisson(40.0, 400, ("cheap",))
    first, _ = run(shape, arrivals)
    again, _ = run(shape, arrivals)
    known, _ = run(shape, arrivals, Variant(known_lengths=True))
    assert first == again
    assert first != known


@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_a_wrong_model_keeps_its_promises_all_the_same(shape, poisson, factor) -> None:
    outcomes, routed = run(
        shape, poisson(30.0, 1200, ("cheap",)), knowledge=EngineKnowledge(step_factor=factor)
    )
    own = [outcome for outcome in outcomes if outcome.engine is not None]
    assert len(kept(outcomes)) >= 0.97 * len(own)
    assert routed.last is not None


def test_a_wrong_model_without_the_loops_breaks_them(shape, poisson) -> None:
    """The negative control of the test above."""
    knowledge = EngineKnowledge(step_factor=0.6, loops=False)
    outcomes, _ = run(shape, poisson(40.0, 1200, ("cheap",)), knowledge=knowledge)
    own = [outcome for outcome in outcomes if outcome.engine is not None]
    assert len(kept(outcomes)) < 0.8 * len(own)


def test_two_engines_share_by_least_load(shape, poisson) -> None:
    outcomes, _ = run(shape, poisson(20.0, 400, ("cheap",)), engines=2)
    counts = [
        sum(outcome.engine == f"pool:own/{place}" for outcome in outcomes) for place in range(2)
    ]
    assert sum(counts) == 400
    assert min(counts) > 120


def test_a_second_look_mends_what_late_news_costs(shape) -> None:
    """Four long prompts within 0.4 s of each second, of which two workers give the room away."""
    rng = random.Random(1)
    arrivals = sorted(
        Arrival(second + rng.uniform(0.0, 0.4), rng.randrange(3000, 7000), 20, "cheap")
        for second in range(150)
        for _ in range(4)
    )
    late = EngineKnowledge(workers=2, skew_s=0.05)
    exact, _ = run(shape, arrivals)
    once, _ = run(shape, arrivals, knowledge=replace(late, looks_again=False))
    twice, _ = run(shape, arrivals, knowledge=late)
    assert avoided(once) < 0.9 * avoided(exact)
    assert avoided(twice) > 0.95 * avoided(exact)
    own = [item for item in twice if item.engine is not None]
    assert len(kept(twice)) >= 0.99 * len(own)
    assert any(item.abandoned for item in twice)
