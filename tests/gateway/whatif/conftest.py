"""A small engine and steady traffic for replays; the bench's `routed` decides in some of them."""

import random
import sys
from pathlib import Path
from typing import Any

import pytest

from backends.simulator.shape import EngineShape
from backends.stepmodel import FittedStepModel
from gateway.config.settings import Settings, parse
from gateway.whatif.replay_fleet import ReplayFleet, engine_models
from gateway.whatif.traffic import Arrival
from gateway.whatif.whatif_run import run_whatif
from ledger.prices.book import Price, PriceBook, PriceTerms
from ledger.prices.rates import rates_from

sys.path.append(str(Path(__file__).parents[2] / "bench"))

CONFIG = """
models:
  chat: {targets: [pool:chat, openai/mini], compare_with: [openai/mini]}
  inside: {targets: [pool:chat], residency: internal_only, compare_with: [openai/mini]}
pools:
  chat:
    engine: {kind: simulated, model: h100-llama-3.1-8b-fp8, replicas: 1}
    gpu: {type: H100, usd_per_hour: 3}
providers: {openai: {api_key_env: X}}
policies: [%s]
"""
RULES = {
    "tight": "{name: tight, slo: {ttft_ms: 500, tpot_ms: 50, attainment: 0.99}}",
    "loose": "{name: loose, slo: {ttft_ms: 9000, tpot_ms: 90}, otherwise: best_effort}",
    "alone": "{name: alone, residency: internal_only, slo: {ttft_ms: 500, tpot_ms: 50}}",
    "queued": "{name: queued, residency: internal_only, slo: {ttft_ms: 500, tpot_ms: 50},"
    " otherwise: queue, queue_ms: 1500}",
}
PRICES = PriceBook(
    [
        Price(
            1,
            "openai/mini",
            "ours",
            0,
            PriceTerms(rates_from({"input": 150_000, "output": 600_000})),
        )
    ]
)


@pytest.fixture(scope="session")
def shape() -> EngineShape:
    step = FittedStepModel(a_s=4.79e-3, b_s=28e-6, c_s=46.8e-9, d_s=27.8e-6, t0_s=13.8e-3)
    return EngineShape(step=step, blocks=30_001, prefill_budget_tokens=2048, context_tokens=32_768)


@pytest.fixture(scope="session")
def poisson():
    """(rate, count, models) -> arrivals with lengths around 1,000 in and 200 out."""

    def make(rate: float, count: int, models: tuple[str, ...] = ("chat",), seed: int = 1):
        rng, at_s, made = random.Random(seed), 0.0, []
        for _ in range(count):
            at_s += rng.expovariate(rate)
            prompt = 1 + int(rng.lognormvariate(6.6, 0.6))
            output = 1 + int(rng.expovariate(1 / 200))
            made.append(Arrival(at_s, min(prompt, 8000), min(output, 2000), rng.choice(models)))
        return made

    return make


def _under(rule: str) -> Settings:
    return parse(CONFIG % RULES[rule], name="test")


@pytest.fixture(scope="session")
def under():
    """The name of a set -> the configuration under it."""
    return _under


@pytest.fixture(scope="session")
def house() -> ReplayFleet:
    """One engine and one API."""
    known = _under("tight")
    return ReplayFleet(known, PRICES, engine_models(known, ["chat"], {}, []), {}, 10**15)


@pytest.fixture(scope="session")
def busy(house, poisson) -> dict[str, Any]:
    """A loose set against a tight one at twice what the engine can do."""
    told: list[int] = []
    sets = [("new", _under("loose")), ("old", _under("tight"))]
    arrivals = poisson(25.0, 1200)
    document = run_whatif(house, sets, arrivals, 1, lambda _name, done: told.append(done))
    assert (told[0], told[-1]) == (0, 1200)
    document["traffic"] |= {"source": "x.csv", "form": "ours", "left_out": 0, "times": 1.0}
    return document
