"""Streams of the simulated engine, timed: tokens, arrivals, shared prefixes, failures."""

import asyncio
import random
from contextlib import asynccontextmanager

import httpx
import pytest
import uvicorn

from backends.engine.benchclient import BenchClient, BenchTarget
from backends.engine.benchfigures import BenchSlo, point
from backends.engine.benchload import (
    PromptShape,
    closed_load,
    even_load,
    poisson_load,
    random_words,
)
from backends.errors import BackendError
from backends.http import HttpClient
from backends.metrics import parse
from backends.openai import OpenAIBackend
from backends.simulator import running
from backends.simulator.journal import RequestJournal
from backends.simulator.server import SimulatedEngineApp
from backends.simulator.shape import EngineShape
from backends.stepmodel import FittedStepModel

STEP = FittedStepModel(a_s=2e-3, b_s=1e-5, c_s=1e-8, d_s=1e-5, t0_s=2e-3)


@asynccontextmanager
async def engine(model: str = "sim", context_tokens: int = 4096):
    shape = EngineShape(STEP, blocks=4001, max_num_seqs=64, context_tokens=context_tokens)
    application = SimulatedEngineApp(shape, model, profile="test", journal=RequestJournal())
    listener = running.bind("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(application, lifespan="on", log_level="critical"))
    task = asyncio.create_task(server._serve([listener]))
    while not server.started:  # noqa: ASYNC110 - uvicorn offers no event for it
        await asyncio.sleep(0.005)
    http = HttpClient()
    try:
        yield OpenAIBackend(f"http://127.0.0.1:{listener.getsockname()[1]}/v1", client=http)
    finally:
        await http.aclose()
        server.should_exit = True
        await task
        listener.close()


@pytest.mark.parametrize("chat", [True, False])
async def test_a_closed_loop_counts_what_the_engine_counts(chat):
    async with engine() as backend:
        client = BenchClient(backend, BenchTarget("sim", chat=chat))
        prompts = await client.calibrate(0, random.Random(1))
        seen = []
        found = await client.run(closed_load(4, 12, PromptShape(200, 20)), prompts, seen.append)
    assert len(found) == len(seen) == 12
    assert [finding.error for finding in found] == [None] * 12
    assert {finding.output_tokens for finding in found} == {20}
    for finding in found:
        assert finding.input_tokens == pytest.approx(200, abs=20)
        assert 0 < finding.ttft_s <= finding.e2e_s  # a late machine reads all at once
        assert len(finding.gaps_s) <= 19
        assert sum(finding.gaps_s) == pytest.approx(finding.e2e_s - finding.ttft_s, abs=0.02)
    assert point(found, BenchSlo()).in_flight <= 4.001


async def test_an_open_loop_sends_at_its_own_times():
    async with engine() as backend:
        client = BenchClient(backend, BenchTarget("sim", chat=False))
        prompts = await client.calibrate(0, random.Random(1))
        for loop in (
            even_load(40.0, 10, PromptShape(50, 5)),
            poisson_load(40.0, 10, PromptShape(50, 5), random.Random(2)),
        ):
            found = await client.run(loop, prompts)
            for ask, finding in zip(loop.asks, found, strict=True):
                assert finding.start_s >= ask.at_s - 1e-3, "never before its time"


async def test_a_shared_prefix_is_the_engines_prefix():
    """Of each prompt after the first the engine finds the shared tokens in its cache, no others."""
    hits = {}
    for shared in (400, 0):
        async with engine() as backend:
            client = BenchClient(backend, BenchTarget("sim", chat=False))
            prompts = await client.calibrate(shared, random.Random(1))
            found = await client.run(closed_load(1, 4, PromptShape(512, 4, shared)), prompts)
            hits[shared] = await cached(backend)
        assert [finding.error for finding in found] == [None] * 4
    assert 3 * 400 * 0.85 <= hits[400] <= 3 * 400 * 1.15
    assert hits[0] == 0


async def cached(backend: OpenAIBackend) -> int:
    origin = backend._origin
    async with httpx.AsyncClient(trust_env=False) as client:
        page = await client.get(f"http://{origin.host}:{origin.port}/metrics")
    return parse(page.text).prefix_hit_tokens_total


async def test_refusals_are_samples_with_their_reason():
    async with engine() as backend:
        client = BenchClient(backend, BenchTarget("other", chat=False))
        with pytest.raises(BackendError, match="404"):
            await client.calibrate(0, random.Random(1))
        ask = await client.send_request("load", 4, began=0.0)
    assert "404" in ask.error


async def test_an_engine_with_a_short_context_is_calibrated_with_short_prompts():
    async with engine(context_tokens=200) as backend:
        client = BenchClient(backend, BenchTarget("sim", chat=False))
        assert (
            "400"
            in (await client.send_request(random_words(240, random.Random(1)), 4, began=0.0)).error
        )
        prompts = await client.calibrate(0, random.Random(1))
        found = await client.run(closed_load(1, 4, PromptShape(64, 8)), prompts)
    assert [finding.error for finding in found] == [None] * 4
    assert all(finding.input_tokens == pytest.approx(64, abs=8) for finding in found)


async def test_an_address_without_anybody_is_a_failed_sample():
    http = HttpClient()
    client = BenchClient(OpenAIBackend("http://127.0.0.1:1/v1", client=http), BenchTarget("m"))
    ask = await client.send_request("load", 4, began=0.0)
    await http.aclose()
    assert "Unreachable" in ask.error


TOKEN = b'data: {"choices": [{"index": 0, "delta": {"content": "x"}}]}\n\n'
END = b"data: [DONE]\n\n"


async def streamed(*pieces: bytes, endless: bool = False):
    """One request to a server that streams just this."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"}")
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
        )
        writer.writelines(pieces)
        try:
            while endless:
                writer.write(b"data: " + b"a" * 65536)
                await writer.drain()
        except ConnectionError:
            pass
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    http = HttpClient()
    try:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        client = BenchClient(OpenAIBackend(url, client=http), BenchTarget("m"))
        return await asyncio.wait_for(client.send_request("Hello", 4, began=0.0), 20)
    finally:
        await http.aclose()
        server.close()


async def test_a_stream_without_an_end_is_given_up():
    this_streamed = await streamed(endless=True)
    assert this_streamed.error == "its stream is longer than 4 tokens can be; it was given up"


@pytest.mark.parametrize("count", ["1e99", "-5", '"no"', "true", "[1]"])
async def test_usage_that_is_no_count_is_a_failure_and_no_figure(count):
    usage = f'data: {{"choices": [], "usage": {{"completion_tokens": {count}}}}}\n\n'.encode()
    this_streamed = await streamed(TOKEN, usage, END)
    assert this_streamed.error is not None
    assert this_streamed.error.startswith("its usage is not a count: completion_tokens is ")
    assert this_streamed.output_tokens == 1


@pytest.mark.parametrize("odd", [b"3", b'{"a": 1}', b"[3]", b'[{"delta": 3}]', b"[[]]"])
async def test_events_of_another_shape_carry_no_token(odd):
    this_streamed = await streamed(b'data: {"choices": ' + odd + b"}\n\n", END)
    assert this_streamed.error == "no token came"


async def test_a_stream_that_is_cut_short_is_no_fast_answer():
    """An engine that died, or that says so: part of an answer would count as a whole one."""
    cut = await streamed(TOKEN)
    assert cut.error is not None
    assert "carried no usage" in cut.error
    said = await streamed(TOKEN, b'data: {"error": {"message": "out of memory"}}\n\n', END)
    assert said.error == "its stream ends with an error: out of memory"
    usage = b'data: {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1}}\n\n'
    assert (await streamed(TOKEN, usage, END)).error is None
