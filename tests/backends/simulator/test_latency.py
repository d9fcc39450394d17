"""A provider's tokens in time."""

import asyncio
import random
import statistics

import pytest

from backends.simulator.dialect import SimulatedChoice
from backends.simulator.latency import Latency, LatencySource
from backends.simulator.scripts import Script

FAST = Latency(ttft_s=0.01, tpot_s=0.001)
CHOICE = SimulatedChoice(0, 300, (1, 2), Script("x" * 80, 20, "stop"))


@pytest.fixture
async def source():
    return LatencySource(FAST, random.Random(1), asyncio.get_running_loop(), block_tokens=128)


def test_draws_follow_their_medians_and_repeat_with_the_seed():
    latency = Latency()
    draws = [latency.draw(rng) for rng in [random.Random(4)] for _ in range(3000)]
    assert statistics.median(d[0] for d in draws) == pytest.approx(0.45, rel=0.05)
    assert statistics.median(d[1] for d in draws) == pytest.approx(0.015, rel=0.05)
    assert latency.draw(random.Random(4)) == draws[0]


async def test_a_sequence_ends_and_never_runs_backwards(source):
    event, seen = asyncio.Event(), []

    def wake():
        seen.append(timed.generated)
        event.set()

    timed = source.start(CHOICE, wake)
    while not timed.done:
        await event.wait()
        event.clear()
    assert seen[0] == 1
    assert seen == sorted(seen)
    assert seen[-1] == 20


async def test_a_stall_is_silent_for_ever(source):
    event = asyncio.Event()
    source.stall_at = 1
    timed = source.start(CHOICE, event.set)
    await event.wait()
    assert timed.generated == 1
    assert not timed.done
    assert timed.timer.when() <= asyncio.get_running_loop().time()  # none is set any more


async def test_a_prompt_seen_before_is_cached(source):
    first = source.start(CHOICE, lambda: None)
    second = source.start(CHOICE, lambda: None)
    assert (first.cached_tokens, second.cached_tokens) == (0, 256)
    source.stop(first)
    source.stop(second)
    assert first.timer.cancelled()
