"""A stalled engine is told from a busy one, a quiet one and one that cannot be read."""

import asyncio
from itertools import count

import httpx
import pytest

from backends.engine.environment import Environment
from backends.engine.flags import EngineLaunch
from backends.engine.stall import stalled

BASE = "http://engine/v1"
PAGE = """\
vllm:num_requests_running 1
vllm:num_requests_waiting 0
vllm:num_preemptions_total 0
vllm:prompt_tokens_total 5
vllm:generation_tokens_total 5
vllm:kv_cache_usage_perc {usage}
"""


class Engine:
    """`stuck`: nothing comes of a request; `moves`: its KV cache fills meanwhile."""

    def __init__(self, *, stuck: bool, moves: bool = False, page: str = PAGE) -> None:
        self.stuck, self.moves, self.page = stuck, moves, page
        self.asked = 0
        self._usage = count()

    async def __call__(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/metrics":
            usage = next(self._usage) / 1e4 if self.moves else 0.5
            return httpx.Response(200, text=self.page.format(usage=usage))
        self.asked += 1
        if self.stuck:
            await asyncio.Event().wait()
        return httpx.Response(200, json={"choices": [{"text": "x"}]})


async def watched(engine: Engine, tmp_path, *, waits: bool = True, seconds: float = 0.6) -> str:
    launch = EngineLaunch(Environment(tmp_path), tmp_path, "m", "cpu")
    transport = httpx.MockTransport(engine)
    async with httpx.AsyncClient(transport=transport) as http, asyncio.timeout(seconds):
        return await stalled(http, BASE, launch, lambda: waits, 0.12)


async def test_it_has_stalled_when_neither_figures_nor_an_answer_come(tmp_path):
    engine = Engine(stuck=True)
    assert "requests wait, and it has done nothing for" in await watched(engine, tmp_path)
    assert engine.asked == 1


@pytest.mark.parametrize(
    ("engine", "waits", "is_asked"),
    [
        (Engine(stuck=True), False, False),  # nobody waits: nobody cares
        (Engine(stuck=True, moves=True), True, False),  # it reads a prompt that takes minutes
        (Engine(stuck=True, page="none"), True, False),  # what cannot be read says nothing
        (Engine(stuck=False), True, True),  # it was quiet, and answers
    ],
)
async def test_what_else_looks_like_it_is_let_be(tmp_path, engine, waits, is_asked):
    with pytest.raises(TimeoutError):
        await watched(engine, tmp_path, waits=waits)
    assert bool(engine.asked) is is_asked
