"""Load of a benchmark: arrival times, lengths, and prompts with a shared prefix.

An open loop sends at fixed times, whether the engine keeps up or not. A closed loop keeps a fixed
number of requests in flight. The random generator is an argument, so that one seed always gives one
load.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from backends.simulator.measurements import MeasuredRequest

WORDS = (
    *("load", "queue", "token", "cache", "model", "price", "stream", "answer", "router", "engine"),
    *("batch", "prompt", "latency", "budget", "hour", "machine", "volume", "ledger", "team"),
    "request",
)


@dataclass(frozen=True, slots=True)
class PromptShape:
    """Token counts of each request. The first `shared` tokens of all prompts are equal."""

    prompt: int
    output: int
    shared: int = 0


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """One request of a benchmark: token counts, and `at_s` from the start of the run.

    A closed loop ignores `at_s` and sends in order as streams become free.
    """

    at_s: float
    prompt: int
    output: int


@dataclass(frozen=True, slots=True)
class LoadProfile:
    """Load of one run: open loop (`rate` in requests/s), closed loop (`at_once`), or recorded.

    The streams of a closed loop start spread over `spread_s` seconds. Streams that start together
    stay in step, and every prompt then waits for all others.
    """

    asks: tuple[BenchRequest, ...]
    rate: float | None = None
    at_once: int | None = None
    spread_s: float = 0.0

    @property
    def name(self) -> str:
        """Return the run's name in measurement files: the rate, the concurrency, or "recorded"."""
        if self.rate is not None:
            return f"{self.rate:g}"
        return f"{self.at_once} at once" if self.at_once else "recorded"


def poisson_load(rate: float, count: int, shape: PromptShape, rng: random.Random) -> LoadProfile:
    """Return an open loop with Poisson arrivals; `rate` is in requests per second."""
    at_s, asks = 0.0, []
    for _ in range(count):
        asks.append(BenchRequest(at_s, shape.prompt, shape.output))
        at_s += rng.expovariate(rate)
    return LoadProfile(tuple(asks), rate=rate)


def even_load(rate: float, count: int, shape: PromptShape) -> LoadProfile:
    """Return an open loop with evenly spaced arrivals; `rate` is in requests per second."""
    asks = (BenchRequest(number / rate, shape.prompt, shape.output) for number in range(count))
    return LoadProfile(tuple(asks), rate=rate)


def closed_load(
    at_once: int, count: int, shape: PromptShape, *, spread_s: float = 0.0
) -> LoadProfile:
    asks = (BenchRequest(0.0, shape.prompt, shape.output),) * count
    return LoadProfile(asks, at_once=at_once, spread_s=spread_s)


def recorded_load(requests: Sequence[MeasuredRequest], *, speed: float = 1.0) -> LoadProfile:
    """Return an open loop with recorded arrivals and lengths. `speed` 2 sends twice as fast."""
    start_s = min(request.start_s for request in requests)
    asks = [
        BenchRequest(
            (request.start_s - start_s) / speed, request.prompt_tokens, request.output_tokens
        )
        for request in requests
    ]
    return LoadProfile(tuple(sorted(asks, key=lambda ask: ask.at_s)))


class BenchPrompts:
    """Generator of prompts with a given number of tokens, calibrated on two measured texts."""

    def __init__(self, shared: int, rng: random.Random, *, per_word: float, around: float) -> None:
        """Create a generator. `around` is the number of tokens that the chat template adds."""
        self._rng = rng
        self._per_word, self._around = per_word, around
        self._shared_words = max(0, round((shared - around) / per_word)) if shared else 0
        self._shared = rng.choices(WORDS, k=self._shared_words)

    @classmethod
    def measured(
        cls, shared: int, rng: random.Random, short: tuple[int, int], long: tuple[int, int]
    ) -> "BenchPrompts":
        """Return a generator calibrated by two (words, tokens) pairs that an engine reported."""
        words = long[0] - short[0]
        per_word = max((long[1] - short[1]) / words, 0.1)
        return cls(shared, rng, per_word=per_word, around=max(0.0, short[1] - short[0] * per_word))

    def text(self, tokens: int) -> str:
        words = max(1, round((tokens - self._around) / self._per_word))
        own = self._rng.choices(WORDS, k=max(0, words - self._shared_words))
        return " ".join([*self._shared[:words], *own])


def random_words(count: int, rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=count))
