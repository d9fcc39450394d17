"""What is learned of a rate: its pull, its hours, its errors."""

import json
import random
from math import cos, exp, log, pi

import pytest

from router.scaling.rate_forecast import RateForecaster


def told(rates: list[float], step_s: float = 600.0) -> RateForecaster:
    forecaster = RateForecaster(step_s)
    for place, rate in enumerate(rates):
        forecaster.observe(rate, (place + 1) * step_s)
    return forecaster


def returning(steps: int, pull: float, seed: int = 1) -> list[float]:
    rng, level = random.Random(seed), 0.0
    found = []
    for _ in range(steps):
        level += -pull * level + rng.gauss(0, 0.1)
        found.append(10 * exp(level))
    return found


def count(memory: object) -> int:
    """Numbers that a memory holds."""
    if isinstance(memory, dict):
        return sum(count(part) for part in memory.values())
    return len(memory) if isinstance(memory, list) else 1


def test_a_constant_rate_is_expected_to_stay() -> None:
    forecaster = told([7.0] * 300)
    assert forecaster.rate(forecaster.expected()) == pytest.approx(7.0, abs=1e-5)
    assert forecaster.errors.quantile(0.95) == pytest.approx(0, abs=0.02)


def test_the_pull_towards_the_mean_is_learned() -> None:
    """A rate that returns fast is known from one that does not."""
    strong, weak = told(returning(2_000, 0.3)), told(returning(2_000, 0.02))
    assert strong.pull > 0.2 > 0.1 > weak.pull


@pytest.mark.parametrize("base", [0.01, 0.1])
def test_the_noise_of_few_requests_is_no_pull(base) -> None:
    """A load that stays for hours and is counted by a handful of requests, nights without any."""
    rng, forecaster = random.Random(5), RateForecaster(240.0, base)
    for step in range(360 * 3):
        mean = 6.0 if step // 120 % 2 else 0.7
        arrived = sum(rng.random() < mean / 60 for _ in range(60))
        forecaster.observe(arrived / 3.2, (step + 1) * 240.0)
    assert forecaster.pull < 0.05


def test_errors_are_wider_after_restless_hours_than_after_calm_ones() -> None:
    rng, forecaster, level = random.Random(9), RateForecaster(600.0), 2.0
    for step in range(600):
        level += rng.gauss(0, 0.3 if step // 100 % 2 else 0.03) - 0.05 * (level - 2.0)
        forecaster.observe(exp(level), (step + 1) * 600.0)
        if step == 499:
            calm = forecaster.width
    assert calm < 0.6 < 1.3 < forecaster.width


def test_forecasts_beat_the_last_value_where_rates_return() -> None:
    forecaster, ours, last = RateForecaster(600.0), 0.0, 0.0
    for place, rate in enumerate(returning(2_000, 0.3, seed=2)):
        if place > 200:
            ours += abs(log(rate) - forecaster.expected())
            last += abs(log(rate) - forecaster.last)
        forecaster.observe(rate, place * 600.0)
    assert ours < 0.95 * last


def test_a_days_hours_are_learned_where_they_repeat() -> None:
    rates = [8 * (1 - 0.7 * cos(2 * pi * step / 144)) for step in range(144 * 6)]
    forecaster = told(rates)
    expected = log(8 * (1 - 0.7 * cos(2 * pi * (144 * 6 + 18) / 144)))
    for step in range(144 * 6, 144 * 6 + 18):
        forecaster.observe(8 * (1 - 0.7 * cos(2 * pi * step / 144)), (step + 1) * 600.0)
    assert abs(forecaster.expected() - expected) < 0.5 * abs(forecaster.last - expected)


def test_silence_and_floods_leave_numbers() -> None:
    forecaster = told([0.0] * 200 + [1e9] + [0.0] * 200 + [5.0])
    assert abs(forecaster.expected() - log(5)) <= 0.7 + 1e-9
    assert 0 <= forecaster.pull <= 0.5


def test_memory_goes_through_json_and_is_constant() -> None:
    short, long = told(returning(50, 0.1)), told(returning(900, 0.1))
    assert count(short.memory()) == count(long.memory()) < 1_000
    other = RateForecaster.from_memory(json.loads(json.dumps(long.memory())))
    for forecaster in (long, other):
        forecaster.observe(9.0, 901 * 600.0)
    assert other.expected() == pytest.approx(long.expected())
    assert other.pull == long.pull


@pytest.mark.parametrize("name", sorted(RateForecaster(600.0).memory()))
@pytest.mark.parametrize("damage", [None, [], "x", [float("nan")] * 5])
def test_damaged_memory_is_named(name, damage) -> None:
    memory = told([3.0] * 5).memory()
    memory[name] = damage
    with pytest.raises(ValueError, match=name):
        RateForecaster.from_memory(memory)
