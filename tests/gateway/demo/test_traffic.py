"""Live traffic: valid requests with the team's key, bounded, and it stops when told."""

import asyncio
import json
import random

import pytest
import uvicorn

from backends.simulator import words
from backends.simulator.dialect import SimulatedRules, parse
from backends.simulator.running import bind
from gateway.demo import traffic
from gateway.demo.demand import TEAMS, arrival

KEYS = {team.name: f"key-{team.name}" for team in TEAMS}


class Gateway:
    """Answers at once, or never, and remembers who asked."""

    def __init__(self, status=200, silent=False):
        self.status, self.silent = status, silent
        self.seen = []
        self.open = self.peak = 0

    async def __call__(self, scope, receive, send):
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = dict(scope["headers"])
        self.seen.append((headers[b"authorization"].decode(), json.loads(body)["model"]))
        self.open += 1
        self.peak = max(self.peak, self.open)
        try:
            await send({"type": "http.response.start", "status": self.status, "headers": []})
            while self.silent and (await receive())["type"] != "http.disconnect":
                pass
            await send({"type": "http.response.body", "body": b"data: [DONE]\n\n"})
        finally:
            self.open -= 1


@pytest.fixture
async def driven():
    """Drive a stand-in for the gateway until it has seen `count` requests."""
    servers = []

    async def go(gateway, count, *, linger_s=0.0):
        listener = bind("127.0.0.1", 0)
        server = uvicorn.Server(uvicorn.Config(gateway, lifespan="off", log_level="critical"))
        serving = asyncio.create_task(server._serve([listener]))
        servers.append((server, serving, listener))
        stop = asyncio.Event()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        task = asyncio.create_task(traffic.drive(url, KEYS, random.Random(1), stop, per_s=50.0))
        async with asyncio.timeout(30):
            while len(gateway.seen) < count:  # noqa: ASYNC110 - it has no event
                await asyncio.sleep(0.01)
            await asyncio.sleep(linger_s)
            stop.set()
            return await task

    yield go
    for server, serving, listener in servers:
        server.should_exit = True
        await serving
        listener.close()


async def test_every_team_asks_for_its_model_with_its_key(driven):
    gateway = Gateway()
    tally = await driven(gateway, 60)
    assert {(f"Bearer {KEYS[t.name]}", t.model) for t in TEAMS} == set(gateway.seen)
    assert tally.answered > 0
    assert tally.refused == tally.failed == tally.dropped == 0


async def test_refusals_are_counted(driven):
    tally = await driven(Gateway(status=429), 20)
    assert tally.refused > 0
    assert tally.answered == 0


async def test_stopping_leaves_nothing_open(driven):
    gateway = Gateway(silent=True)
    tally = await driven(gateway, 20)
    async with asyncio.timeout(10):
        while gateway.open:  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.01)
    assert tally.answered == 0


async def test_what_is_more_than_the_limit_is_dropped(driven, monkeypatch):
    monkeypatch.setattr(traffic, "IN_FLIGHT_LIMIT", 3)
    gateway = Gateway(silent=True)
    tally = await driven(gateway, 3, linger_s=0.5)
    assert gateway.peak == 3
    assert tally.dropped > 0


def test_prompts_and_answers_have_the_length_that_the_demand_says():
    rng = random.Random(9)
    for _ in range(20):
        this_arrival = arrival(rng, 0.0)
        ask = parse(
            traffic.body(this_arrival, 77), chat=True, rules=SimulatedRules((), 100_000, 16)
        )
        assert ask.stream
        assert ask.prompt_tokens == pytest.approx(this_arrival.prompt_tokens, abs=20)
        assert ask.choices[0].script.tokens == this_arrival.output_tokens
        assert words.LABEL in traffic.body(this_arrival, 77).decode()
