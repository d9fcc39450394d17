"""Files and batches of a simulated provider, as OpenAI's clients see them."""

import asyncio
import json
import random
from typing import Any

import httpx
import pytest

from backends.simulator.journal import RequestJournal
from backends.simulator.latency import Latency
from backends.simulator.provider import SimulatedProvider
from backends.simulator.quota import Quota

CHAT = "/v1/chat/completions"


@pytest.fixture
async def client() -> Any:
    provider = SimulatedProvider(
        "alpha", rng=random.Random(1), journal=RequestJournal(), quota=Quota(10**6, 10**9),
        latency=Latency(0.001, ttft_sigma=0.0, tpot_s=0.001, tpot_sigma=0.0),
    )  # fmt: skip
    provider.jobs.begin_s = 0.0
    told: asyncio.Queue[dict] = asyncio.Queue()
    heard: asyncio.Queue[dict] = asyncio.Queue()
    life = asyncio.create_task(provider({"type": "lifespan"}, told.get, heard.put))
    await told.put({"type": "lifespan.startup"})
    await heard.get()
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=provider), base_url="http://alpha/v1"
    ) as async_client:
        async_client.provider = provider
        yield async_client
    await told.put({"type": "lifespan.shutdown"})
    await life


def line(name: str, **body: Any) -> dict[str, Any]:
    ask = {"model": "m", "max_tokens": 3, "messages": [{"role": "user", "content": "hi"}], **body}
    return {"custom_id": name, "method": "POST", "url": CHAT, "body": ask}


async def uploaded(client: Any, *lines: dict[str, Any]) -> dict[str, Any]:
    text = "".join(json.dumps(line) + "\n" for line in lines).encode()
    answer = await client.post(
        "/files", files={"file": ("in.jsonl", text)}, data={"purpose": "batch"}
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


async def made(client: Any, *lines: dict[str, Any]) -> dict[str, Any]:
    file = await uploaded(client, *lines)
    asked = {"input_file_id": file["id"], "endpoint": CHAT, "completion_window": "24h",
             "metadata": {"a": "b"}}  # fmt: skip
    return (await client.post("/batches", json=asked)).json()


async def ended(client: Any, batch: dict[str, Any]) -> dict[str, Any]:
    while True:
        found = (await client.get(f"/batches/{batch['id']}")).json()
        if found["status"] in ("completed", "expired", "cancelled"):
            return found
        await asyncio.sleep(0.01)


async def lines_of(client: Any, file_id: str) -> list[dict[str, Any]]:
    text = (await client.get(f"/files/{file_id}/content")).text
    return [json.loads(line) for line in text.splitlines()]


async def test_a_batch_runs_every_line_once(client: Any) -> None:
    batch = await made(client, line("a"), line("b"), line("bad", messages=[7]))
    assert (batch["object"], batch["status"]) == ("batch", "validating")
    done = await ended(client, batch)
    assert done["metadata"] == {"a": "b"}
    assert done["request_counts"] == {"total": 3, "completed": 2, "failed": 1}
    output = await lines_of(client, done["output_file_id"])
    assert [each_line["custom_id"] for each_line in output] == ["a", "b"]
    assert output[0]["response"]["body"]["usage"]["completion_tokens"] == 3
    (bad,) = await lines_of(client, done["error_file_id"])
    assert (bad["custom_id"], bad["response"]["status_code"]) == ("bad", 400)
    served = [json.loads(each_line) for each_line in client.provider._journal.lines().splitlines()]
    assert [item["request_id"] for item in served if item["status"] == "finished"] == ["a", "b"]


async def test_files_are_listed_and_deleted(client: Any) -> None:
    file = await uploaded(client, line("a"))
    listed = (await client.get("/files", params={"purpose": "batch", "limit": "1"})).json()
    assert [entry["filename"] for entry in listed["data"]] == ["in.jsonl"]
    assert (await client.get(f"/files/{file['id']}")).json() == file
    assert (await client.delete(f"/files/{file['id']}")).json()["deleted"] is True
    assert (await client.get(f"/files/{file['id']}")).status_code == 404


async def test_what_is_cut_short_says_so(client: Any) -> None:
    client.provider.jobs.most = 1
    done = await ended(client, await made(client, line("a"), line("b")))
    assert done["status"] == "expired"
    (left,) = await lines_of(client, done["error_file_id"])
    assert (left["custom_id"], left["response"]) == ("b", None)
    assert left["error"]["code"] == "batch_expired"


async def test_a_batch_can_be_cancelled(client: Any) -> None:
    client.provider.jobs.begin_s = 0.2
    batch = await made(client, line("a"))
    assert (await client.post(f"/batches/{batch['id']}/cancel")).json()["status"] == "cancelling"
    assert (await ended(client, batch))["status"] == "cancelled"
    assert (await client.post(f"/batches/{batch['id']}/cancel")).status_code == 409


async def test_refusals_and_faults(client: Any) -> None:
    assert (await client.post("/batches", json={"input_file_id": "no"})).status_code == 404
    assert (await client.get("/batches/no")).status_code == 404
    assert (await client.put("/batches/no")).status_code == 404
    client.provider.faults.add(json.dumps({"fault": "status", "status": 503}).encode())
    answer = await client.post("/files", files={"file": ("x", b"1")}, data={"purpose": "batch"})
    assert answer.status_code == 503
