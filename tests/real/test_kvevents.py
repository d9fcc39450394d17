"""What a real engine's KV events make us believe of its prefix cache, beside what it then finds.

Prompts overrun a cache of 23 blocks: the first of them is gone, the last is not, and the
time that the events come to lies between the two.
"""

import asyncio
import contextlib

import httpx
import pytest

from backends.kvevents import PrefixMemory
from gateway.clock import Clock
from gateway.fleet.kv_event_listener import listen

BLOCKS, BLOCK_TOKENS = 23, 128
PROMPT = 3 * BLOCK_TOKENS + 16  # three whole blocks: eight of these are more than there is


async def cached(client: httpx.AsyncClient, number: int) -> int:
    """Of a prompt that is like no other, how many tokens the engine found."""
    prompt = [100 + number] + [300 + (number * 7 + place) % 400 for place in range(PROMPT - 1)]
    body = {"model": "tiny", "prompt": prompt, "max_tokens": 2, "ignore_eos": True}
    answer = await client.post("/completions", json=body)
    assert answer.status_code == 200, answer.text
    details = answer.json()["usage"]["prompt_tokens_details"] or {}
    return int(details.get("cached_tokens") or 0)


@pytest.mark.part("vllm")
@pytest.mark.long  # a third engine's start
async def test_what_the_events_say_is_lost_the_engine_does_not_find(scarce_engine) -> None:
    engine, address = scarce_engine, scarce_engine.kv_events
    memory, clock = PrefixMemory(), Clock()
    task = asyncio.create_task(listen("pool:a/0", address, memory, clock))
    try:
        async with httpx.AsyncClient(
            base_url=engine.base_url, timeout=120, trust_env=False
        ) as client:
            await heard_at_all(client, memory)
            asked_s = [clock.now_s()]
            assert await cached(client, 1) == 0
            await asyncio.sleep(0.2)
            assert await cached(client, 1) == 3 * BLOCK_TOKENS, "the control: nothing is lost yet"
            assert memory.forgotten_s == 0.0
            for number in range(2, 10):
                await asyncio.sleep(0.2)
                asked_s.append(clock.now_s())
                assert await cached(client, number) == 0
            async with asyncio.timeout(30):
                while memory.forgotten_s < asked_s[0]:  # noqa: ASYNC110  (events come when they do)
                    await asyncio.sleep(0.02)
            assert asked_s[0] < memory.forgotten_s < asked_s[-1]
            assert 0 < memory.blocks <= BLOCKS
            assert memory.missed == 0
            assert await cached(client, 9) == 3 * BLOCK_TOKENS, "the last is there"
            assert await cached(client, 1) == 0, "the first is not"
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def heard_at_all(client: httpx.AsyncClient, memory: PrefixMemory) -> None:
    """What is told before a subscriber has joined is lost: prompts until one was heard."""
    async with asyncio.timeout(60):
        number = 1000
        while not memory.blocks:
            number += 1
            await cached(client, number % 300)
            await asyncio.sleep(0.1)
