"""Pools with roles in virtual time: who reads, who answers, and what is held meanwhile."""

from dataclasses import replace
from typing import Any

import pytest

from backends.simulator.latency import Latency
from gateway.config.settings import Settings
from gateway.whatif.apis import draw_latencies
from gateway.whatif.policy_replay import PolicyReplay
from gateway.whatif.replay import Replay, ReplayOutcome
from gateway.whatif.replay_fleet import EngineModelSource, ReplayFleet
from gateway.whatif.tables import notes
from gateway.whatif.whatif_run import run_whatif
from ledger.prices.book import PriceBook

ROLES = {"prefill": 1, "decode": 2}


def settings(roles: dict[str, Any] | None, **slo: float) -> Settings:
    engine = {"kind": "simulated", "model": "h100-llama-3.1-8b-fp8", "replicas": 0 if roles else 3}
    pool: dict[str, Any] = {"engine": engine, "gpu": {"type": "H100", "usd_per_hour": 3}}
    if roles:
        # An engine whose answers slow down is dear, so prompts are read elsewhere.
        pool["roles"] = {
            "prefill": {"replicas": roles["prefill"], "bid_price_usd_per_s": "0.000001"},
            "decode": {"replicas": roles["decode"], "bid_price_usd_per_s": "0.01"},
            "setup_ms": 40,
        }
    return Settings.model_validate(
        {
            "models": {"chat": {"targets": ["pool:chat"], "compare_with": ["openai/mini"]}},
            "pools": {"chat": pool},
            "policies": [
                {"name": "own", "slo": slo or {"ttft_ms": 2000, "tpot_ms": 50},
                 "otherwise": "best_effort"}
            ],
        }
    )  # fmt: skip


def played(rules: Settings, shape, arrivals) -> tuple[list[ReplayOutcome], PolicyReplay]:
    house = house_of(rules, shape)
    planned = PolicyReplay(house, rules, arrivals[-1].at_s)
    return Replay(planned.seats, {}, arrivals, ()).run(planned), planned


def house_of(rules: Settings, shape) -> ReplayFleet:
    sources = {"chat": EngineModelSource(shape, "test")}
    return ReplayFleet(rules, PriceBook([]), sources, {}, 10**15)


@pytest.fixture(scope="module")
def apart(shape, poisson):
    return played(settings(ROLES), shape, poisson(12.0, 400))


def test_a_prompt_is_read_on_one_engine_and_answered_on_another(apart) -> None:
    outcomes, planned = apart
    legs = [each for each in outcomes if each.choice.leg is not None]
    assert len(legs) > 300
    assert {each.choice.leg.seat.name for each in legs} == {"pool:chat/0"}
    assert {each.engine for each in legs} == {"pool:chat/1", "pool:chat/2"}
    assert all(0.0 < each.ttft_s < 30.0 for each in outcomes), "all were answered"
    reader, *others = (seat.engine.totals for seat in planned.seats)
    read = sum(each.arrival.prompt_tokens for each in legs)
    whole = sum(each.arrival.prompt_tokens for each in outcomes)
    assert reader.prompt_tokens == read
    assert sum(each.prompt_tokens for each in others) == whole
    assert reader.generation_tokens == len(legs), "one token each, which nobody gets"


def test_a_first_token_waits_for_reading_and_for_the_transfer(shape, poisson) -> None:
    (arrival,) = poisson(1.0, 1)
    rules = settings(ROLES)
    ((outcome,), _) = played(rules, shape, [arrival])
    leg, step = outcome.choice.leg, shape.step
    assert leg is not None
    reading_s = step.a_s + step.d_s * arrival.prompt_tokens
    least_s = step.t0_s + reading_s + leg.transfer_s
    assert least_s < outcome.ttft_s < least_s + 2.5 * (step.t0_s + step.a_s + step.b_s)
    assert leg.transfer_s > 0.04


def test_nothing_is_held_any_more_when_all_is_over(apart) -> None:
    outcomes, planned = apart
    replay = Replay(planned.seats, {}, [], ())
    assert not replay.run(planned)
    for seat in planned.seats:
        assert not seat.flights
        state = seat.state(1e9)
        assert seat.engine.kept == seat.engine.context_tokens == 0
        assert (state.kv_used_tokens, state.kv_promised_tokens) == (0, 0)
    assert sum(each.choice.leg is not None for each in outcomes) > 300


def test_answers_go_on_at_their_pace_beside_prompts_of_others(shape, poisson) -> None:
    """The control: three whole replicas, whose answers wait for steps that read prompts."""
    arrivals = [
        each._replace(prompt_tokens=4000, output_tokens=max(20, each.output_tokens))
        for each in poisson(6.0, 200)
    ]
    shape = replace(shape, prefill_budget_tokens=4096)

    def slowest(roles: dict[str, Any] | None) -> float:
        outcomes, _ = played(settings(roles, ttft_ms=3000, tpot_ms=60), shape, arrivals)
        return sorted(each.tpot_s for each in outcomes)[190]

    assert slowest(ROLES) < 0.8 * slowest(None)


def test_whoever_gives_up_before_the_prompt_is_read_holds_nothing(shape, poisson) -> None:
    arrivals = poisson(4.0, 5)
    rules = settings(ROLES)
    house = house_of(rules, shape)
    planned = PolicyReplay(house, rules, 1.0)
    choose = planned.choose

    def impatient(*asked: Any) -> Any:
        choice = choose(*asked)
        return replace(choice, patience_s=0.001, api="none")

    planned.choose = impatient  # type: ignore[method-assign]
    replay = Replay(planned.seats, {}, arrivals, _answers(len(arrivals)))
    outcomes = replay.run(planned)
    assert all(each.abandoned for each in outcomes)
    assert all(not seat.flights and seat.engine.kept == 0 for seat in planned.seats)


def test_engines_in_roles_have_steps_of_their_own(shape) -> None:
    rules = settings(ROLES)
    house = house_of(rules, shape)
    budgets = [
        house.shape_under(rules, engine).prefill_budget_tokens for engine in house.runtime.engines
    ]
    assert budgets[0] == 8192
    assert budgets[1] == budgets[2] <= shape.prefill_budget_tokens


def test_a_report_says_how_many_prompts_were_read_elsewhere(shape, poisson) -> None:
    rules = settings(ROLES)
    house = house_of(rules, shape)
    document = run_whatif(house, [("now", rules)], poisson(5.0, 50), 1, lambda *_: None)
    rows = document["results"][0]["targets"]
    count = sum(row["apart"] for row in rows)
    assert count > 30
    line = f"now: a prefill engine read the prompts of {count} requests for another one."
    assert line in notes(
        document
        | {
            "traffic": document["traffic"]
            | {"source": "x", "form": "ours", "left_out": 0, "times": 1.0}
        }
    )


def _answers(count: int) -> list[Any]:
    return list(draw_latencies(count, Latency(), 1))
