"""A provider's timing of tokens: lognormal TTFT and TPOT, independent of load.

Random draws come from the given generator, so a seed repeats a run. A sequence wakes its reader
about every 30 ms with all tokens due by then, as providers' streams do.
"""

import asyncio
import math
import random
from collections.abc import Callable
from dataclasses import dataclass

from backends.simulator.dialect import SimulatedChoice
from backends.simulator.generation import GenerationProgress

CHUNK_S = 0.03
CACHE_LIMIT = 50_000  # prompt blocks that a provider remembers


@dataclass(frozen=True, slots=True)
class Latency:
    """Medians in seconds, and the sigmas of their logarithms."""

    ttft_s: float = 0.450
    ttft_sigma: float = 0.35
    tpot_s: float = 0.015
    tpot_sigma: float = 0.30

    def draw(self, rng: random.Random) -> tuple[float, float]:
        """Return TTFT and TPOT of one request."""
        return (
            self.ttft_s * math.exp(self.ttft_sigma * rng.gauss(0.0, 1.0)),
            self.tpot_s * math.exp(self.tpot_sigma * rng.gauss(0.0, 1.0)),
        )


class ProviderTiming:
    """Timing of one sequence at a provider.

    `stall_at`: it stops sending after that many tokens.
    """

    def __init__(self, tokens: int, submitted_s: float, cached_tokens: int) -> None:
        self.tokens = tokens
        self.submitted_s = submitted_s
        self.cached_tokens = cached_tokens
        self.generated = 0
        self.done = False
        self.first_s: float | None = None
        self.timer: asyncio.TimerHandle | None = None


class LatencySource:
    """A source of sequences with drawn times; `stall_at` applies to new ones."""

    def __init__(
        self,
        latency: Latency,
        rng: random.Random,
        loop: asyncio.AbstractEventLoop,
        *,
        block_tokens: int,
    ) -> None:
        self.latency = latency
        self.stall_at: int | None = None
        self._rng = rng
        self._loop = loop
        self._block_tokens = block_tokens
        self._cache: dict[int, None] = {}

    def start(self, choice: SimulatedChoice, wake: Callable[[], None]) -> GenerationProgress:
        ttft_s, tpot_s = self.latency.draw(self._rng)
        now_s = self._loop.time()
        timed = ProviderTiming(choice.script.tokens, now_s, self._hit(choice))
        first_s = now_s + ttft_s
        stall_at = self.stall_at
        chunk = max(1, round(CHUNK_S / tpot_s))

        def step() -> None:
            if timed.first_s is None:
                timed.first_s = self._loop.time()
                due = 1
            else:
                passed = int((self._loop.time() - first_s) / tpot_s + 1e-6) + 1
                due = min(timed.tokens, max(passed, timed.generated + 1))
            if stall_at is not None and due >= stall_at:
                timed.generated = max(timed.generated, min(stall_at, timed.tokens))
                wake()
                return  # and never again
            timed.generated = due
            if due >= timed.tokens:
                timed.done = True
            else:
                until = min(timed.tokens - 1, due - 1 + chunk)
                timed.timer = self._loop.call_at(first_s + until * tpot_s, step)
            wake()

        timed.timer = self._loop.call_at(first_s, step)
        return timed

    def stop(self, progress: GenerationProgress) -> None:
        timer = progress.timer if isinstance(progress, ProviderTiming) else None
        if timer is not None:
            timer.cancel()

    def _hit(self, choice: SimulatedChoice) -> int:
        """Return the leading prompt tokens that an earlier request left in the provider's cache."""
        hits = 0
        for block in choice.hashes:
            if block not in self._cache:
                break
            hits += 1
        for block in choice.hashes:
            self._cache.pop(block, None)
            self._cache[block] = None
        while len(self._cache) > CACHE_LIMIT:
            del self._cache[next(iter(self._cache))]
        return hits * self._block_tokens
