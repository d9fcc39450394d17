"""Coding agents' sessions: long prompts, of which nearly all were sent before.

Each begins with its instructions and files, and every turn adds 3 to 7 % to the prompt, up to
150,000 tokens. Most pauses are those of tools, seconds long; some are people's, of which many
outlast the five minutes that providers keep a prompt for. Seeds make everything anew.
"""

import random
from collections.abc import Iterator

from gateway.whatif.traffic import Arrival

LEAST, MOST_TOKENS = 20_000, 150_000
TURNS = 30  # of a session on average
BY_PEOPLE = 0.15  # of the pauses
TURN_S = 40.0  # of a session, answers included: what its rate is reckoned with


def sessions_of(concurrent: float, seconds: float, seed: int) -> list[Arrival]:
    """Return the turns of so many sessions at a time on average, in the order of time."""
    rng = random.Random(f"agentic {seed}")
    found: list[Arrival] = []
    at_s, number = -TURNS * TURN_S, 0
    while True:
        at_s += rng.expovariate(concurrent / (TURNS * TURN_S))
        if at_s >= seconds:
            break
        number += 1
        turns = _turns(rng, at_s, f"{seed}-{number}")
        found += [turn for turn in turns if 0.0 <= turn.at_s < seconds]
    return sorted(found)


def _turns(rng: random.Random, at_s: float, name: str) -> Iterator[Arrival]:
    prompt = rng.uniform(LEAST, 2.5 * LEAST)
    for _ in range(1 + round(rng.expovariate(1.0 / TURNS))):
        answer = min(8000, 1 + round(rng.lognormvariate(5.8, 0.9)))
        yield Arrival(at_s, int(prompt), answer, "code", session=name, max_tokens=16_384)
        prompt += prompt * rng.uniform(0.03, 0.07)
        if prompt > MOST_TOKENS:  # it is summed up, and begins anew
            prompt, name = rng.uniform(LEAST, 2.5 * LEAST), name + "'"
        people = rng.random() < BY_PEOPLE
        pause_s = rng.lognormvariate(5.0, 1.0) if people else rng.lognormvariate(2.0, 0.8)
        at_s += 0.03 * answer + pause_s
