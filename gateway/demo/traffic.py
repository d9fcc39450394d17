"""Live traffic of the demo, sent to the gateway in real time until stopped.

Open loop: arrivals do not wait for answers. At most `IN_FLIGHT_LIMIT` requests are open; further
arrivals are dropped and counted. Answers are read and discarded; some clients disconnect early. The
traffic knows only the base URL and the keys.
"""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import dataclass

import httpx
import msgspec

from backends.simulator import words
from gateway.demo.demand import DemoArrival, arrival, pace

IN_FLIGHT_LIMIT = 64
TIMEOUT_S = 600.0
ANSWER_S = 80.0  # approximate duration of an answer; patience is a share of it
PER_S = 0.08  # about 1.5 times a busy hour at the end of the month


@dataclass(slots=True)
class DemoCounts:
    """Answers by result; `refused` counts statuses of 400 and above."""

    sent: int = 0
    answered: int = 0
    left: int = 0
    refused: int = 0
    failed: int = 0
    dropped: int = 0


async def drive(
    base_url: str,
    keys: Mapping[str, str],
    rng: random.Random,
    stop: asyncio.Event,
    *,
    per_s: float = PER_S,
) -> DemoCounts:
    """Send requests until `stop` is set; `base_url` ends in /v1, `keys` are by team name."""
    tally = DemoCounts()
    limits = httpx.Limits(max_connections=IN_FLIGHT_LIMIT, max_keepalive_connections=16)
    timeout = httpx.Timeout(TIMEOUT_S, connect=5.0)
    tasks: set[asyncio.Task[None]] = set()
    async with httpx.AsyncClient(limits=limits, timeout=timeout, trust_env=False) as client:
        try:
            for gap_s in pace(rng, per_s=per_s):
                if await _stopped_within(stop, gap_s):
                    break
                if len(tasks) >= IN_FLIGHT_LIMIT:
                    tally.dropped += 1
                    continue
                this_arrival = arrival(rng, 0.0)
                request = client.build_request(
                    "POST",
                    f"{base_url}/chat/completions",
                    content=body(this_arrival, rng.getrandbits(32)),
                    headers={
                        "authorization": f"Bearer {keys[this_arrival.team.name]}",
                        "content-type": "application/json",
                    },
                )
                tally.sent += 1
                task = asyncio.create_task(_converse(client, request, this_arrival, tally))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    return tally


def body(demo_arrival: DemoArrival, seed: int) -> bytes:
    """Return a streaming chat request: the team's shared prefix and a question of its own."""
    head = words.text(demo_arrival.team.prefix_tokens, demo_arrival.team.prefix_tokens)
    question = words.text(
        seed, max(1, demo_arrival.prompt_tokens - demo_arrival.team.prefix_tokens)
    )
    return msgspec.json.encode(
        {
            "model": demo_arrival.team.model,
            "messages": [
                {"role": "system", "content": head},
                {"role": "user", "content": f"{seed:08x} {question}"},
            ],
            "stream": True,
            "max_tokens": demo_arrival.max_tokens,
            # a simulated answer ends here, a real one may not
            "min_tokens": demo_arrival.output_tokens,
        }
    )


async def _stopped_within(stop: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return False
    return True


async def _converse(
    client: httpx.AsyncClient, request: httpx.Request, demo_arrival: DemoArrival, tally: DemoCounts
) -> None:
    """Read an answer to its end, or disconnect when the client's patience ends."""
    patience_s = TIMEOUT_S if demo_arrival.patience is None else demo_arrival.patience * ANSWER_S
    try:
        async with asyncio.timeout(patience_s):
            response = await client.send(request, stream=True)
            try:
                async for _ in response.aiter_raw():
                    pass
            finally:
                await response.aclose()
    except TimeoutError:
        tally.left += 1
    except httpx.HTTPError:
        tally.failed += 1
    else:
        if response.status_code >= 400:
            tally.refused += 1
        else:
            tally.answered += 1
