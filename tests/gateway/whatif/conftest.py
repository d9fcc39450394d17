"""A small engine and steady traffic for replays."""

import random

import pytest

from backends.simulator.shape import Shape
from backends.stepmodel import StepModel
from gateway.whatif.traffic import Arrival


@pytest.fixture(scope="session")
def shape() -> Shape:
    step = StepModel(a_s=4.79e-3, b_s=28e-6, c_s=46.8e-9, d_s=27.8e-6, t0_s=13.8e-3)
    return Shape(step=step, blocks=30_001, prefill_budget_tokens=2048, context_tokens=32_768)


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
