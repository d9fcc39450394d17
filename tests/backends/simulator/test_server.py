"""The simulated engine over HTTP, as a client of vLLM sees it."""

import asyncio
import base64
import json
import struct
from dataclasses import replace

import pytest

from backends.simulator import server as server_module
from backends.simulator.dialect import SimulatedRules
from backends.simulator.profiles import PROFILES
from backends.simulator.server import ERRORS
from backends.simulator.shapefile import save

CHAT = "/v1/chat/completions"


def chat(**fields):
    return {"model": "sim", "messages": [{"role": "user", "content": "hello"}], **fields}


async def journal(client):
    lines = (await client.get("/_journal")).text.splitlines()
    return [json.loads(line) for line in lines]


async def metric(client, name):
    lines = (await client.get("/metrics")).text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.startswith(f"vllm:{name}{{"))


async def test_it_says_that_it_is_simulated(serve, engine):
    async with serve(engine) as client:
        models = await client.get("/v1/models")
        assert models.headers["x-simulated"] == "breakeven-simulator"
        assert models.json()["data"][0]["owned_by"] == "breakeven-simulator"
        assert (await client.get("/health")).status_code == 200
        assert (await client.get("/version")).json()["profile"] == "test"
        answer = await client.post(CHAT, json=chat(max_tokens=9))
        assert answer.json()["choices"][0]["message"]["content"].startswith("[simulated]:")


async def test_usage_metrics_and_journal_agree(serve, engine):
    async with serve(engine) as client:
        whole = (await client.post(CHAT, json=chat(max_tokens=20, n=2))).json()["usage"]
        options = {"include_usage": True}
        stream = await client.post(
            CHAT, json=chat(max_tokens=7, stream=True, stream_options=options, ignore_eos=True)
        )
        last = json.loads(stream.text.split("\n\n")[-3].removeprefix("data: "))["usage"]
        entries = await journal(client)
        assert [e["completion_tokens"] for e in entries] == [
            whole["completion_tokens"], last["completion_tokens"],
        ]  # fmt: skip
        assert last["completion_tokens"] == 7
        total = whole["completion_tokens"] + 7
        assert await metric(client, "generation_tokens_total") == total
        assert await metric(client, "prompt_tokens_total") == 3 * whole["prompt_tokens"]
        assert await metric(client, "request_success_total") == 3
        assert entries[1]["status"] == "finished"
        assert entries[1]["sent_tokens"] == 7


async def test_a_client_that_leaves_stops_the_engine(serve, engine):
    async with serve(engine) as client:
        async with client.stream(
            "POST", CHAT, json=chat(stream=True, ignore_eos=True, max_tokens=900)
        ) as response:
            async for _ in response.aiter_raw():
                break
        while not await journal(client):  # noqa: ASYNC110 - it is looked at over HTTP
            await asyncio.sleep(0.01)
        (entry,) = await journal(client)
        assert entry["status"] == "aborted"
        assert 1 <= entry["completion_tokens"] < 900
        assert await metric(client, "generation_tokens_total") == entry["completion_tokens"]
        assert engine.pacer.engine.unfinished == 0


async def test_a_client_that_stays_gets_everything(serve, engine):
    """The negative control of the test above."""
    async with serve(engine) as client:
        await client.post(CHAT, json=chat(stream=True, ignore_eos=True, max_tokens=200))
        (entry,) = await journal(client)
        assert (entry["status"], entry["completion_tokens"]) == ("finished", 200)


async def test_errors_are_vllms(serve, engine):
    async with serve(engine) as client:
        wrong = await client.post(CHAT, json={**chat(), "model": "nope"})
        assert wrong.status_code == 404
        assert wrong.json()["error"]["type"] == "NotFoundError"
        long = await client.post("/v1/completions", json={"model": "sim", "prompt": "x" * 9000})
        assert long.status_code == 400
        assert long.json()["error"]["param"] == "input_tokens"
        missing = await client.post(CHAT, json={"model": "sim"})
        assert missing.json()["error"]["code"] == 400
        assert (await client.post("/v1/nothing", json={})).status_code == 404
        assert (await client.request("PUT", CHAT)).status_code == 405
        assert [e["status"] for e in await journal(client)] == ["refused"] * 3


async def test_a_full_queue_is_503_and_counted(serve, engine):
    async with serve(engine) as client:
        body = chat(max_tokens=400, ignore_eos=True)
        answers = await asyncio.gather(*(client.post(CHAT, json=body) for _ in range(12)))
        codes = sorted(answer.status_code for answer in answers)
        assert codes == [200] * 8 + [503] * 4
        busy = next(a for a in answers if a.status_code == 503)
        assert busy.json()["error"]["type"] == "Service Unavailable"
        assert await metric(client, "admission_rejections_total") == 4


async def test_embeddings_depend_on_the_text_alone(serve, engine):
    async with serve(engine) as client:
        body = {"model": "sim", "input": ["a", "b", "a"]}
        plain = (await client.post("/v1/embeddings", json=body)).json()
        first, second, third = (entry["embedding"] for entry in plain["data"])
        assert first == third != second
        packed = (
            await client.post("/v1/embeddings", json={**body, "encoding_format": "base64"})
        ).json()["data"][0]["embedding"]
        unpacked = struct.unpack(f"<{len(first)}f", base64.b64decode(packed))
        assert max(abs(x - y) for x, y in zip(unpacked, first, strict=True)) < 1e-6
        assert await metric(client, "prompt_tokens_total") == 2 * plain["usage"]["prompt_tokens"]


async def test_tokens_are_counted_by_four_bytes(serve, engine):
    async with serve(engine) as client:
        answer = await client.post("/tokenize", json={"model": "sim", "prompt": "hello gate"})
        assert answer.json()["count"] == 3
        assert (await client.post("/reset_prefix_cache")).status_code == 200


def test_every_refusal_has_a_status():
    assert set(ERRORS) == {"model", "too_long", "validation"}
    assert SimulatedRules((), 1, 1).images is False


def test_a_fitted_file_is_served_and_what_is_none_is_told(tmp_path, capsys, monkeypatch) -> None:
    served = []
    monkeypatch.setattr(server_module, "run", served.extend)
    path = tmp_path / "ours.json"
    save(path, replace(PROFILES["h200-llama-3.1-8b-fp8"].shape, blocks=77))
    server_module.main(["--profile", str(path), "--port", "0"])
    ((name, server, listener),) = served
    listener.close()
    assert (name, server._shape.blocks) == ("engine ours", 77)
    path.write_text("{}")
    for word, said in ((str(path), "no engine model"), ("nobody", "none of")):
        with pytest.raises(SystemExit):
            server_module.main(["--profile", word, "--port", "0"])
        assert said in capsys.readouterr().err
