"""The simulated external API: OpenAI's dialect, limits, and trouble on request."""

import asyncio
import json
import random

import httpx
import pytest

from backends.simulator.journal import RequestJournal
from backends.simulator.latency import Latency
from backends.simulator.provider import SimulatedProvider
from backends.simulator.quota import Quota

CHAT = "/v1/chat/completions"
FAST = Latency(ttft_s=0.01, tpot_s=0.0005)


def provider(quota=None, models=()):
    return SimulatedProvider(
        "openai",
        rng=random.Random(2),
        journal=RequestJournal(),
        quota=quota or Quota(1000, 1_000_000),
        models=models,
        latency=FAST,
    )


def chat(**fields):
    return {"model": "gpt", "messages": [{"role": "user", "content": "hello"}], **fields}


async def entries(client):
    return [json.loads(line) for line in (await client.get("/_journal")).text.splitlines()]


async def test_any_model_is_served_with_usage_and_limits(serve):
    async with serve(provider()) as client:
        answer = await client.post(CHAT, json=chat(max_tokens=12))
        usage = answer.json()["usage"]
        assert usage["prompt_tokens_details"] == {"cached_tokens": 0}
        assert answer.headers["x-simulated"] == "breakeven-simulator"
        assert answer.headers["x-ratelimit-remaining-requests"] == "999"
        assert (await client.get("/metrics")).status_code == 404
        (entry,) = await entries(client)
        assert entry["completion_tokens"] == usage["completion_tokens"]


async def test_a_stream_ends_with_usage_and_the_end_mark(serve):
    async with serve(provider()) as client:
        body = chat(max_tokens=40, stream=True, stream_options={"include_usage": True})
        text = (await client.post(CHAT, json=body)).text
        events = [line.removeprefix("data: ") for line in text.split("\n\n") if line]
        assert events[-1] == "[DONE]"
        assert json.loads(events[-2])["usage"]["completion_tokens"] == 40


async def test_listed_models_are_the_only_ones(serve):
    async with serve(provider(models=("gpt",))) as client:
        listed = (await client.get("/v1/models")).json()["data"]
        assert [(m["id"], m["owned_by"]) for m in listed] == [("gpt", "breakeven-simulator")]
        wrong = await client.post(CHAT, json={**chat(), "model": "other"})
        assert wrong.status_code == 404
        assert wrong.json()["error"]["code"] == "model_not_found"


async def test_the_rate_limit_is_429_with_retry_after(serve):
    async with serve(provider(Quota(1, 1000))) as client:
        assert (await client.post(CHAT, json=chat(max_tokens=3))).status_code == 200
        limited = await client.post(CHAT, json=chat(max_tokens=3))
        assert limited.status_code == 429
        assert int(limited.headers["retry-after"]) > 30
        assert limited.json()["error"]["code"] == "rate_limit_exceeded"


@pytest.mark.parametrize("status", [500, 503, 429])
async def test_an_injected_status_strikes_once(serve, status):
    async with serve(provider()) as client:
        fault = {"fault": "status", "status": status, "retry_after_s": 1.5}
        await client.post("/_faults", json=fault)
        struck = await client.post(CHAT, json=chat(max_tokens=3))
        assert (struck.status_code, struck.headers["retry-after"]) == (status, "1.5")
        assert (await client.post(CHAT, json=chat(max_tokens=3))).status_code == 200
        assert [e["status"] for e in await entries(client)] == ["refused", "finished"]


@pytest.mark.parametrize("stream", [True, False])
async def test_a_cut_breaks_the_connection_before_the_end(serve, stream):
    async with serve(provider()) as client:
        await client.post("/_faults", json={"fault": "cut", "after_tokens": 5})
        with pytest.raises(httpx.RemoteProtocolError):
            await client.post(CHAT, json=chat(max_tokens=300, ignore_eos=True, stream=stream))
        (entry,) = await entries(client)
        assert entry["status"] == "broken"
        assert entry["completion_tokens"] >= 5


async def test_a_stall_goes_silent_until_the_client_leaves(serve):
    async with serve(provider()) as client:
        await client.post("/_faults", json={"fault": "stall", "after_tokens": 3})
        with pytest.raises(httpx.ReadTimeout):
            await client.post(
                CHAT, json=chat(max_tokens=300, ignore_eos=True, stream=True), timeout=1.5
            )
        whole = await client.post(CHAT, json=chat(max_tokens=30, ignore_eos=True, stream=True))
        assert whole.text.endswith("[DONE]\n\n")  # the next one is not stalled
        stalled = next(e for e in await entries(client) if e["status"] == "aborted")
        assert stalled["completion_tokens"] == 3


@pytest.mark.parametrize(("continues", "status"), [(False, "aborted"), (True, "finished")])
async def test_an_answer_whose_client_leaves_stops_or_goes_on(serve, continues, status):
    made = provider()
    made.continues = continues
    async with serve(made) as client:
        body = chat(max_tokens=400, ignore_eos=True, stream=True)
        async with client.stream("POST", CHAT, json=body) as answer:
            await anext(answer.aiter_bytes())
        while not (found := await entries(client)):  # noqa: ASYNC110  (asked over HTTP)
            await asyncio.sleep(0.01)
        assert found[0]["status"] == status
        assert (found[0]["completion_tokens"] == 400) is continues


async def test_trouble_can_be_called_off_and_nonsense_is_refused(serve):
    async with serve(provider()) as client:
        assert (await client.post("/_faults", json={"fault": "fire"})).status_code == 400
        await client.post("/_faults", json={"fault": "status", "times": 9})
        assert (await client.delete("/_faults")).json() == {"queued": 0}
        assert (await client.post(CHAT, json=chat(max_tokens=3))).status_code == 200


async def test_embeddings_and_pictures(serve):
    async with serve(provider()) as client:
        found = await client.post("/v1/embeddings", json={"model": "e", "input": "text"})
        assert found.json()["usage"]["prompt_tokens"] == 1
        picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]
        body = chat(max_tokens=2) | {"messages": [{"role": "user", "content": picture}]}
        assert (await client.post(CHAT, json=body)).json()["usage"]["prompt_tokens"] > 256
