"""Replayed targets: what the router is shown of them."""

import random
from importlib.resources import files

import pytest

from backends.engine.catalog import GPUS
from gateway.config.settings import parse
from gateway.demo.demand import arrival
from gateway.demo.replay_fleet import DemoFleet
from ledger.prices.book import PriceBook
from router.decide import decide
from router.estimates import LatencyTracker
from router.request_kinds import RequestKind
from router.types import OutputMoments, Policy, RoutingRequest, TargetHealth


@pytest.fixture
def settings():
    return parse(files("gateway.demo").joinpath("demo.yaml").read_text(), name="demo.yaml")


@pytest.fixture
def fleet(settings):
    return DemoFleet(settings, PriceBook([]), 0)


@pytest.fixture
def request_of():
    moments = OutputMoments(100, 200.0, 60_000.0, 500.0)
    return RoutingRequest(
        kind=RequestKind.CHAT, model="chat", prompt_tokens=5000, prompt_tokens_bound=6000,
        max_tokens=1000, output=moments,
    )  # fmt: skip


def candidates(fleet, settings, request, at_s=0.0):
    return fleet.candidates(settings.models["chat"], request, LatencyTracker(), at_s)


def sent(fleet, settings, request, name="a", at_s=0.0):
    """Dispatch one request to the first replica; its arrival."""
    replica = fleet.replicas[0]
    chosen = decide(request, Policy("p"), candidates(fleet, settings, request)[:1]).first_choice
    this_arrival = arrival(random.Random(1), at_s)
    replica.submit(name, this_arrival, chosen, 6000)
    return this_arrival


def test_the_demo_names_its_gpus_as_the_catalogue_does(settings):
    assert {pool.gpu.type for pool in settings.pools.values()} <= {gpu.name for gpu in GPUS}


def test_engines_and_apis_are_candidates(fleet, settings, request_of):
    found = candidates(fleet, settings, request_of)
    assert [c.name for c in found] == [
        "pool:llama-8b/0",
        "pool:llama-8b/1",
        "sim-anthropic/claude-haiku-4-5",
    ]
    assert found[0].engine.kv_capacity_tokens == 2587 * 16
    assert found[0].bound_pusd > 0
    assert found[2].expected_pusd is None  # no price book, no price


def test_load_shows_and_passes(fleet, settings, request_of):
    message = sent(fleet, settings, request_of)
    replica = fleet.replicas[0]
    state = replica.state(0.0)
    assert state.running == 1
    assert state.queued_prefill_tokens == message.prompt_tokens
    assert state.prefill_rate_tokens_per_s == pytest.approx(message.prompt_tokens / 5)
    (flight,) = replica.advance(1e4)
    assert flight.generated == message.output_tokens
    idle = replica.state(1e4)
    assert (idle.running, idle.kv_used_tokens, idle.kv_promised_tokens) == (0, 0, 0)
    assert replica.sample(1e4).output_tokens_total == message.output_tokens


def test_promises_are_seen_one_by_one_when_it_is_crowded(fleet, settings, request_of):
    """As the gateway sees them: sequences end one after the other, so they never add up."""
    replica = fleet.replicas[0]
    chosen = decide(
        request_of, Policy("p"), candidates(fleet, settings, request_of)[:1]
    ).first_choice
    for name, promised in (("a", 9008), ("b", 160)):
        replica.submit(name, arrival(random.Random(name), 0.0), chosen, promised)
    replica.advance(10.0)
    assert replica.state(10.0).residents == ()
    replica.submit("c", arrival(random.Random("c"), 10.0), chosen, 24_000)
    replica.advance(20.0)
    state = replica.state(20.0)
    assert len(state.residents) == 3
    assert sum(held for held, _, _ in state.residents) == state.context_tokens
    finals = {final - held for held, final, _ in state.residents}
    assert 16 in finals, "a promise outgrown is a block more"
    assert 9008.0 in {final for _, final, _ in state.residents}


def test_a_hang_up_keeps_what_was_generated(fleet, settings, request_of):
    message = sent(fleet, settings, request_of)
    replica = fleet.replicas[0]
    replica.advance(3.0)
    flight = replica.abort("a", 3.0)
    assert 0 < flight.generated < message.output_tokens
    assert replica.abort("a", 3.0) is None
    assert replica.state(3.0).running == 0


def test_a_replica_that_fails_loses_its_requests(fleet, settings, request_of):
    sent(fleet, settings, request_of)
    replica = fleet.replicas[0]
    replica.advance(3.0)
    assert [flight.id for flight in replica.fail(3.0)] == ["a"]
    assert replica.state(3.0).health is TargetHealth.DOWN
    assert replica.sample(3.0).health == "down"
    decision = decide(request_of, Policy("p"), candidates(fleet, settings, request_of, 3.0))
    assert decision.first_choice.candidate.name == "pool:llama-8b/1"


def test_an_engine_knows_its_served_name(fleet, settings, request_of):
    assert fleet.served_name(candidates(fleet, settings, request_of)[0]) == "llama-3.1-8b"
