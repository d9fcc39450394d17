"""Layouts of two engines in virtual time: the same mixes, decided by the policies that serve.

Engines are the simulated ones with the step model that `serve` measured of vLLM 0.32 with an 8B
shape in bf16 on an H200 (2026-11-29), so hours of GPU time are minutes of a processor.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import mean
from typing import Any

from backends.simulator.profiles import PROFILES
from backends.stepmodel import FittedStepModel
from gateway.config.settings import Settings
from gateway.whatif.policy_replay import PolicyReplay
from gateway.whatif.replay import Replay, ReplayOutcome
from gateway.whatif.replay_fleet import EngineModelSource, ReplayFleet
from gateway.whatif.traffic import Arrival
from ledger.prices.book import Price, PriceBook, PriceTerms
from ledger.prices.rates import rates_from
from router.types import Slo

WARM_S = 20.0  # lengths, margins and transfers are learned; not counted
STEP = FittedStepModel(a_s=4.84e-3, b_s=2.0e-5, c_s=3.03e-8, d_s=2.02e-5, t0_s=0.0205)
SHAPE = replace(
    PROFILES["h200-llama-3.1-8b-fp8"].shape, step=STEP, pace=None, blocks=58_350,
    context_tokens=8192, prefix_caching=False,
)  # fmt: skip
BOOK = PriceBook(
    [Price(1, "openai/gpt-4o-mini", "ours", 0,
           PriceTerms(rates_from({"input": 150_000, "output": 600_000})))]
)  # fmt: skip


def play(
    settings: Settings,
    draw: Callable[[random.Random], tuple[str, int, int]],
    rate: float,
    seconds: float,
    seed: int,
) -> list[ReplayOutcome]:
    """Return the requests that came after the warm-up; `draw`: model, tokens in, tokens out."""
    rng, arrivals, at_s = random.Random(seed), [], 0.0
    while (at_s := at_s + rng.expovariate(rate)) < WARM_S + seconds:
        name, prompt, tokens = draw(rng)
        arrivals.append(Arrival(at_s, prompt, tokens, name, "bench", max_tokens=tokens))
    sources = {name: EngineModelSource(SHAPE, "bench") for name in settings.pools}
    house = ReplayFleet(settings, BOOK, sources, {}, 10**15)
    planned = PolicyReplay(house, settings, arrivals[-1].at_s)
    outcomes = Replay(planned.seats, {}, arrivals, ()).run(planned)
    return [outcome for outcome in outcomes if outcome.arrival.at_s >= WARM_S]


def figures(
    outcomes: list[ReplayOutcome], classes: Mapping[str, tuple[int, int]]
) -> dict[str, Any]:
    """Shares inside both promises, of all and of each class, and of those read elsewhere."""
    slos = {name: Slo(float(ttft), float(tpot)) for name, (ttft, tpot) in classes.items()}
    kept = {
        name: [each.has_met_slo(slo) for each in outcomes if each.arrival.model == name]
        for name, slo in slos.items()
    }
    apart = [each.choice is not None and each.choice.leg is not None for each in outcomes]
    return {
        "requests": len(outcomes),
        "goodput": round(mean(is_kept for values in kept.values() for is_kept in values), 4),
        **{name: round(mean(values), 4) if values else None for name, values in kept.items()},
        "apart": round(mean(apart), 4),
    }
