"""The load of a benchmark: arrivals, lengths, and prompts that share a beginning.

Open loops send at their own times, whatever the engine does; closed loops keep so many requests in
flight. Chance comes in by argument, so that the same seed asks the same.
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
    """Tokens of each request; the first `shared` of a prompt are the same in all of them."""

    prompt: int
    output: int
    shared: int = 0


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """`at_s` from the start of the run; a closed loop sends in order as soon as it may."""

    at_s: float
    prompt: int
    output: int


@dataclass(frozen=True, slots=True)
class LoadProfile:
    """One run: `rate` in requests per second, or so many `at_once`, or as recorded.

    The streams of a closed loop begin within `spread_s`: begun together they march in step, and
    every prompt waits for all others.
    """

    asks: tuple[BenchRequest, ...]
    rate: float | None = None
    at_once: int | None = None
    spread_s: float = 0.0

    @property
    def name(self) -> str:
        """Return the name that measurement files give a run: its rate, where there is one."""
        if self.rate is not None:
            return f"{self.rate:g}"
        return f"{self.at_once} at once" if self.at_once else "recorded"


def poisson_load(rate: float, count: int, shape: PromptShape, rng: random.Random) -> LoadProfile:
    """Return independent arrivals at a mean rate."""
    at_s, asks = 0.0, []
    for _ in range(count):
        asks.append(BenchRequest(at_s, shape.prompt, shape.output))
        at_s += rng.expovariate(rate)
    return LoadProfile(tuple(asks), rate=rate)


def even_load(rate: float, count: int, shape: PromptShape) -> LoadProfile:
    """Return arrivals at one distance from each other."""
    asks = (BenchRequest(number / rate, shape.prompt, shape.output) for number in range(count))
    return LoadProfile(tuple(asks), rate=rate)


def closed_load(
    at_once: int, count: int, shape: PromptShape, *, spread_s: float = 0.0
) -> LoadProfile:
    asks = (BenchRequest(0.0, shape.prompt, shape.output),) * count
    return LoadProfile(asks, at_once=at_once, spread_s=spread_s)


def recorded_load(requests: Sequence[MeasuredRequest], *, speed: float = 1.0) -> LoadProfile:
    """Return arrivals and lengths of a file; `speed` 2 brings them twice as fast."""
    start_s = min(request.start_s for request in requests)
    asks = [
        BenchRequest(
            (request.start_s - start_s) / speed, request.prompt_tokens, request.output_tokens
        )
        for request in requests
    ]
    return LoadProfile(tuple(sorted(asks, key=lambda ask: ask.at_s)))


class BenchPrompts:
    """Texts of a wanted number of tokens, by what two texts of known length were counted as."""

    def __init__(self, shared: int, rng: random.Random, *, per_word: float, around: float) -> None:
        """`around`: tokens that the engine adds to any prompt, its template's."""
        self._rng = rng
        self._per_word, self._around = per_word, around
        self._shared_words = max(0, round((shared - around) / per_word)) if shared else 0
        self._shared = rng.choices(WORDS, k=self._shared_words)

    @classmethod
    def measured(
        cls, shared: int, rng: random.Random, short: tuple[int, int], long: tuple[int, int]
    ) -> "BenchPrompts":
        """Return prompts calibrated by two (words, tokens) pairs that an engine reported."""
        words = long[0] - short[0]
        per_word = max((long[1] - short[1]) / words, 0.1)
        return cls(shared, rng, per_word=per_word, around=max(0.0, short[1] - short[0] * per_word))

    def text(self, tokens: int) -> str:
        words = max(1, round((tokens - self._around) / self._per_word))
        own = self._rng.choices(WORDS, k=max(0, words - self._shared_words))
        return " ".join([*self._shared[:words], *own])


def random_words(count: int, rng: random.Random) -> str:
    return " ".join(rng.choices(WORDS, k=count))
