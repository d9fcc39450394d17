"""Engines of a what-if are measured ones; what nobody measured is asked for by name."""

import pytest

from backends.simulator.profiles import PROFILES
from gateway.config.settings import parse
from gateway.whatif.replay_fleet import (
    EngineModelSource,
    HouseError,
    ReplayFleet,
    engine_models,
    pools_of_models,
)
from ledger.fleet.pool_records import CapacityRow
from ledger.prices.book import PriceBook

H100 = "h100-llama-3.1-8b-fp8"
SETTINGS = parse(
    f"""
models:
  chat: {{targets: [pool:sim, openai/gpt-4o-mini], compare_with: [openai/gpt-4o-mini]}}
  own: {{targets: [pool:real], compare_with: [openai/gpt-4o-mini]}}
  alias: {{same_as: own}}
  far: {{targets: [openai/gpt-4o-mini]}}
pools:
  sim:
    engine: {{kind: simulated, model: {H100}, replicas: 2, max_num_seqs: 8, context_tokens: 999}}
    gpu: {{type: H100, count: 2, usd_per_hour: 3}}
  real:
    engine: {{kind: vllm, endpoints: ["http://10.0.0.5:8000/v1"]}}
    gpu: {{type: H200}}
providers: {{openai: {{api_key_env: X}}}}
""",
    name="test",
)
MEASURED = CapacityRow(
    "real", "pool:real/0", 5, 40_000, 50.0, 3e-3, 1e-5, 2e-8, 3e-5, 1e-2, "measured", 64
)


def test_pools_are_those_that_the_models_may_use() -> None:
    assert pools_of_models(SETTINGS, iter(["far"])) == []
    assert pools_of_models(SETTINGS, iter(["alias", "chat"])) == ["sim", "real"]


def test_who_says_how_fast_an_engine_is() -> None:
    found = engine_models(SETTINGS, ["sim", "real"], {}, [MEASURED])
    sim, real = found["sim"].shape, found["real"].shape
    assert (sim.max_num_seqs, sim.context_tokens) == (8, 999)
    assert sim.step == PROFILES[H100].shape.step
    assert (real.kv_capacity_tokens, real.max_num_seqs, real.step.a_s) == (40_000, 64, 3e-3)
    assert found["real"].source == "pool:real/0: measured"
    named = {"real": EngineModelSource(PROFILES[H100].shape, "as asked for")}
    assert engine_models(SETTINGS, ["real"], named, [MEASURED])["real"].source == "as asked for"


def test_what_is_not_known_is_asked_for() -> None:
    with pytest.raises(
        HouseError, match=r"pools\.real: its engine was never measured.*--engine real=PROFILE"
    ):
        engine_models(SETTINGS, ["real"], {}, [])
    with pytest.raises(HouseError, match="there is no pool `other`; pools: sim, real"):
        engine_models(SETTINGS, [], {"other": EngineModelSource(PROFILES[H100].shape, "")}, [])


def test_engines_cost_by_the_hour_and_unknown_rates_are_named() -> None:
    engines = engine_models(SETTINGS, ["sim", "real"], {}, [MEASURED])
    house = ReplayFleet(SETTINGS, PriceBook([]), engines, {}, 0)
    assert house.fixed_pusd_per_hour() == (12 * 10**12, ["real"])


def test_a_rate_that_was_entered_counts_before_the_configured_one() -> None:
    engines = engine_models(SETTINGS, ["sim", "real"], {}, [MEASURED])
    entered = {"sim": 5 * 10**12, "real": 10**12, "gone": 9 * 10**12}
    house = ReplayFleet(SETTINGS, PriceBook([]), engines, {}, 0, entered)
    assert house.fixed_pusd_per_hour() == (4 * 5 * 10**12 + 10**12, [])
    unsaid = ReplayFleet(SETTINGS, PriceBook([]), engines, {}, 0, {"sim": None, "real": None})
    assert unsaid.fixed_pusd_per_hour() == (12 * 10**12, ["real"])
    assert [seat.name for seat in house.runtime.engines] == [
        "pool:sim/0", "pool:sim/1", "pool:real/0",
    ]  # fmt: skip
    assert house.value_prices("nobody") == ()
