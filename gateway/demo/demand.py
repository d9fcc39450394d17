"""Demand of the demo: arrivals of a month, and live arrivals.

Four teams have their own prompts and habits. The day has a business peak, the week a weekend, the
month growth, and working days bursts. The random generator is an argument: a seed reproduces a
month. The figures describe an invented company and are not results. Answers are as long as those of
reasoning models: a thousand requests a day fill two small GPUs in business hours.
"""

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass

DAY_S = 86_400.0
PROMPT_LIMIT_TOKENS = 16_000
OUTPUT_LIMIT_TOKENS = 8000
BLOCK_TOKENS = 16

# Relative demand by hour of the UTC day.
_HOURS = (1, 1, 1, 1, 1, 2, 4, 10, 24, 31, 32, 28, 22, 27, 32, 32, 28, 18, 8, 5, 3, 2, 2, 1)
_WEEKEND = 0.12
_GROWTH = (0.45, 1.55)  # relative to the mean rate, first and last day
_BURST_SHARE = 0.03  # of a month's requests, on working days
_BURST_S = 300.0


@dataclass(frozen=True, slots=True)
class DemoTeam:
    """Team of the demo.

    Lengths are lognormal (median, sigma). `prefix_tokens` is the shared prefix.
    """

    name: str
    model: str
    share: float
    prompt_tokens: float
    prompt_sigma: float
    output_tokens: float
    output_sigma: float
    prefix_tokens: int
    hangs_up: float = 0.0  # share of clients that disconnect before the end


TEAMS = (
    DemoTeam("search", "chat", 0.40, 5000, 0.35, 3600, 0.3, 512, hangs_up=0.02),
    DemoTeam("support", "chat", 0.30, 3800, 0.40, 3000, 0.3, 384, hangs_up=0.03),
    DemoTeam("legal", "contracts", 0.12, 7500, 0.25, 4500, 0.3, 256),
    DemoTeam("research", "summarize", 0.18, 10_000, 0.25, 4800, 0.3, 128),
)

# Block hashes of each team's shared prefix.
_PREFIXES = {
    team.name: tuple(range(place << 20, (place << 20) + team.prefix_tokens // BLOCK_TOKENS))
    for place, team in enumerate(TEAMS)
}


@dataclass(frozen=True, slots=True)
class DemoArrival:
    """One request; `patience` is the share of the answer after which its client disconnects."""

    at_s: float
    team: DemoTeam
    prompt_tokens: int
    output_tokens: int
    max_tokens: int
    hashes: tuple[int, ...]
    patience: float | None


def month(rng: random.Random, *, end_s: float, days: int, requests: int) -> Iterator[DemoArrival]:
    """Yield about `requests` arrivals in the `days` before `end_s` (epoch), in order of time."""
    start_s = end_s - days * DAY_S
    hours = [start_s + hour * 3600.0 for hour in range(days * 24)]
    weights = [_weight(at_s, (at_s - start_s) / (days * DAY_S)) for at_s in hours]
    per_weight = requests * (1.0 - _BURST_SHARE) / sum(weights)
    times = [
        at_s
        for hour_s, weight in zip(hours, weights, strict=True)
        for at_s in _poisson(rng, hour_s, 3600.0, weight * per_weight)
    ]
    working = [day for day in range(days) if not _is_weekend(start_s + day * DAY_S)]
    for day in working:
        begin_s = start_s + (day + rng.uniform(0.35, 0.7)) * DAY_S
        growth = _growth(day / days)
        count = requests * _BURST_SHARE / len(working) * growth * rng.uniform(0.4, 1.6)
        times += _poisson(rng, begin_s, _BURST_S, count)
    for at_s in sorted(times):
        if at_s < end_s:
            yield arrival(rng, at_s)


def arrival(rng: random.Random, at_s: float) -> DemoArrival:
    """Return one request of a random team."""
    team = rng.choices(TEAMS, [team.share for team in TEAMS])[0]
    prompt = _lognormal(rng, team.prompt_tokens, team.prompt_sigma)
    output = _lognormal(rng, team.output_tokens, team.output_sigma)
    prompt = min(max(prompt, team.prefix_tokens + 64), PROMPT_LIMIT_TOKENS)
    patience = rng.uniform(0.1, 0.9) if rng.random() < team.hangs_up else None
    return DemoArrival(
        at_s,
        team,
        prompt,
        min(output, OUTPUT_LIMIT_TOKENS),
        OUTPUT_LIMIT_TOKENS,
        _PREFIXES[team.name],
        patience,
    )


def pace(rng: random.Random, *, per_s: float) -> Iterator[float]:
    """Yield gaps between live arrivals in seconds: Poisson, with bursts at the triple rate."""
    at_s = 0.0
    while True:
        bursting = at_s % 120.0 < 20.0  # the first 20 s of every two minutes
        gap_s = rng.expovariate(per_s * (3.0 if bursting else 1.0))
        at_s += gap_s
        yield gap_s


def _weight(at_s: float, passed: float) -> float:
    hour = int(at_s % DAY_S // 3600)
    return _HOURS[hour] * (_WEEKEND if _is_weekend(at_s) else 1.0) * _growth(passed)


def _growth(passed: float) -> float:
    first, last = _GROWTH
    return first + (last - first) * passed


def _is_weekend(at_s: float) -> bool:
    return int(at_s // DAY_S + 3) % 7 >= 5  # the epoch was a Thursday


def _poisson(rng: random.Random, start_s: float, span_s: float, mean: float) -> Iterator[float]:
    """Yield times of a Poisson process with `mean` events in the span."""
    if mean <= 0.0:
        return
    at_s = rng.expovariate(mean / span_s)
    while at_s < span_s:
        yield start_s + at_s
        at_s += rng.expovariate(mean / span_s)


def _lognormal(rng: random.Random, median: float, sigma: float) -> int:
    return max(1, round(median * math.exp(sigma * rng.gauss(0.0, 1.0))))
