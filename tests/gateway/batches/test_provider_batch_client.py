"""A provider's files and batches: answers, refusals, and what nobody knows."""

import asyncio
import gzip
import json
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from backends.address_policy import PUBLIC
from backends.pinned import PinnedTransport
from backends.secret import Secret
from backends.simulator.jobs import SimulatedBatches
from gateway.batches.provider_batch_client import (
    OBJECT_LIMIT_BYTES,
    ProviderBatchClient,
    ProviderBusy,
    ProviderRefused,
    ProviderUnavailable,
    make_batch_providers,
)
from gateway.config.settings import parse
from gateway.errors import ConfigError

CHAT = "/v1/chat/completions"
LINE = json.dumps(
    {"custom_id": "a", "method": "POST", "url": CHAT, "body": {"model": "m"}}
).encode()


async def said(path: str, body: bytes, name: str) -> tuple[int, bytes]:
    return 200, b'{"choices":[]}'


@pytest.fixture
def jobs() -> SimulatedBatches:
    return SimulatedBatches(said, begin_s=0.0)


@pytest.fixture
def remote(jobs: SimulatedBatches) -> ProviderBatchClient:
    return ProviderBatchClient(
        "http://provider/v1", Secret("sk-secret"), httpx.ASGITransport(app=jobs)
    )


def answering(status: int, body: bytes = b"{}") -> ProviderBatchClient:
    def handle(request: httpx.Request) -> httpx.Response:
        assert request.headers["authorization"] == "Bearer sk-secret"
        return httpx.Response(status, content=body)

    return ProviderBatchClient(
        "http://provider/v1", Secret("sk-secret"), httpx.MockTransport(handle)
    )


def failing(error: type[httpx.HTTPError]) -> ProviderBatchClient:
    def handle(request: httpx.Request) -> httpx.Response:
        raise error("sk-secret")

    return ProviderBatchClient(
        "http://provider/v1", Secret("sk-secret"), httpx.MockTransport(handle)
    )


async def test_a_batch_from_its_file_to_its_answers(
    remote: ProviderBatchClient, jobs: SimulatedBatches
) -> None:
    file_id = await remote.upload("out_1.jsonl", LINE + b"\n")
    assert await remote.find_file("out_1.jsonl", 0) == file_id
    assert await remote.find_file("other.jsonl", 0) is None
    made = await remote.create(file_id, CHAT, "out_1")
    assert (await remote.find_batch("out_1", 0)).id == made.id
    assert await remote.find_batch("out_2", 0) is None
    there = made
    while there.status != "completed":
        await asyncio.sleep(0)  # nothing else waits for anything here
        there = await remote.batch(made.id)
    (line,) = [each_line async for each_line in remote.lines(there.output_file_id)]
    assert json.loads(line)["custom_id"] == "a"
    await remote.delete(file_id)
    assert await remote.find_file("out_1.jsonl", 0) is None
    with pytest.raises(ProviderUnavailable):  # 409, which OpenAI says of a batch that has ended
        await remote.cancel(made.id)


async def test_lists_are_walked_to_what_is_older(
    remote: ProviderBatchClient, jobs: SimulatedBatches, monkeypatch
) -> None:
    monkeypatch.setattr("gateway.batches.provider_batch_client.LISTED", 2)
    for number in range(7):
        await remote.upload(f"{number}.jsonl", LINE)
    assert await remote.find_file("0.jsonl", 0) is not None
    assert await remote.find_file("0.jsonl", 2**40) is None, "all are older: one page is enough"
    monkeypatch.setattr("gateway.batches.provider_batch_client.PAGES", 2)
    with pytest.raises(ProviderUnavailable):
        await remote.find_file("0.jsonl", 0)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, ProviderRefused),
        (401, ProviderRefused),
        (404, ProviderRefused),
        (429, ProviderBusy),
        (409, ProviderUnavailable),
        (500, ProviderUnavailable),
    ],
)
async def test_statuses(status: int, error: type[Exception]) -> None:
    with pytest.raises(error) as caught:
        await answering(status, b'{"error":{"message":"sk-secret"}}').batch("b")
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"id":1}', b'{"id":""}', b"\xff"])
async def test_what_cannot_be_read_says_nothing(body: bytes) -> None:
    with pytest.raises(ProviderUnavailable):
        await answering(200, body).batch("b")


@pytest.mark.parametrize(
    ("error", "meant"),
    [
        (httpx.ConnectError, ProviderBusy),
        (httpx.ReadTimeout, ProviderUnavailable),
        (httpx.RemoteProtocolError, ProviderUnavailable),
    ],
)
async def test_broken_connections(error: Any, meant: type[Exception]) -> None:
    with pytest.raises(meant) as caught:
        await failing(error).create("f", CHAT, "out_1")
    assert "secret" not in str(caught.value)


async def test_a_file_that_breaks_off_is_no_whole_file() -> None:
    with pytest.raises(ProviderUnavailable):
        assert [line async for line in failing(httpx.ReadError).lines("f")]
    with pytest.raises(ProviderRefused):
        assert [line async for line in answering(404).lines("f")]


async def test_why_a_batch_failed(remote: ProviderBatchClient, jobs: SimulatedBatches) -> None:
    made = await remote.create(await remote.upload("x", LINE), CHAT, "out_1")
    jobs.batches[made.id].errors.append({"code": "token_limit_exceeded", "message": "x"})
    assert (await remote.batch(made.id)).codes == ("token_limit_exceeded",)


CONFIG = """
models: {api: {targets: [openai/gpt-4o-mini]}}
providers:
  openai: {api_key_env: KEY, batch: true}
  groq: {api_key_env: OTHER}
"""


async def test_only_those_that_say_so_and_with_their_key() -> None:
    settings = parse(CONFIG, name="test")
    runtime = SimpleNamespace(providers={"openai": None, "groq": None})
    found = make_batch_providers(settings, runtime, {"KEY": "sk-1234567890"})
    assert list(found) == ["openai"]
    assert found["openai"].secrets == (Secret("sk-1234567890"),)
    assert "sk-" not in repr(found)
    await found["openai"].remote.aclose()
    with pytest.raises(ConfigError):
        make_batch_providers(settings, runtime, {})


@pytest.mark.parametrize(
    ("url", "meant", "arrives"),
    [
        ("http://127.0.0.1:{port}/v1", ProviderUnavailable, True),
        ("http://127.0.0.1:{unused}/v1", ProviderBusy, False),
        ("http://no-such-name.invalid/v1", ProviderBusy, False),
        ("http://169.254.169.254/v1", ProviderBusy, False),
        ("ftp://127.0.0.1:{port}/v1", ProviderBusy, False),
    ],
)
async def test_what_never_left_was_surely_not_done(
    free_port: int, monkeypatch: pytest.MonkeyPatch, url: str, meant: type[Exception], arrives: bool
) -> None:
    """Against a socket that takes the request, says nothing of it and closes."""
    arrived = bytearray()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.extend(await reader.read(65536))
        writer.close()

    async def nowhere(host: str, *_: object) -> list[str]:
        if host != "127.0.0.1":
            raise OSError("leads nowhere")
        return [host]

    monkeypatch.setattr("backends.pinned.resolve_addresses", nowhere)
    server = await asyncio.start_server(take, "127.0.0.1", 0)
    address = url.format(port=server.sockets[0].getsockname()[1], unused=free_port)
    client = ProviderBatchClient(address, Secret("sk-secret"), PinnedTransport(PUBLIC))
    with pytest.raises(meant):
        await client.create("f", CHAT, "out_1")
    await client.aclose()
    server.close()
    assert bool(arrived) is arrives


async def test_a_key_that_no_head_takes_was_surely_not_sent() -> None:
    client = ProviderBatchClient("http://127.0.0.1:1/v1", Secret("sk\nx"), PinnedTransport(PUBLIC))
    with pytest.raises(ProviderBusy):
        await client.create("f", CHAT, "out_1")
    await client.aclose()


@pytest.mark.parametrize("headers", [{"content-encoding": "gzip"}, {"content-encoding": "br"}])
async def test_what_is_packed_is_not_unpacked(headers: dict[str, str]) -> None:
    """Red before: a few kilobytes could fill the memory."""
    packed = gzip.compress(b'{"id": "b", "status": "completed", "x": "%b"}' % (b"0" * 99_999))

    async def pieces():
        yield packed

    def handle(request: httpx.Request) -> httpx.Response:
        assert request.headers["accept-encoding"] == "identity"
        return httpx.Response(200, headers=headers, content=pieces())

    client = ProviderBatchClient("http://provider/v1", None, httpx.MockTransport(handle))
    with pytest.raises(ProviderUnavailable, match="compressed"):
        await client.batch("b")
    with pytest.raises(ProviderUnavailable, match="compressed"):
        [line async for line in client.lines("f")]


async def test_an_answer_that_is_no_file_has_a_limit() -> None:
    long = b'{"id": "b", "x": "%b"}' % (b"0" * OBJECT_LIMIT_BYTES)
    with pytest.raises(ProviderUnavailable, match="too long"):
        await answering(200, long).batch("b")


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
async def test_lines_are_cut_wherever_pieces_end(size: int) -> None:
    text = b"one\n\n  \ntwo\r\nthree" + b"x" * 20 + b"\nlast"

    async def pieces():
        for at in range(0, len(text), size):
            yield text[at : at + size]

    def handle(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=pieces())

    client = ProviderBatchClient("http://provider/v1", None, httpx.MockTransport(handle))
    assert [line async for line in client.lines("f")] == [
        b"one", b"two\r", b"three" + b"x" * 20, b"last",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("counts", "completed"),
    [
        ({"completed": 7, "failed": 1, "total": 8}, 7), ({"completed": True}, 0), (None, 0),
        ({"completed": -5}, 0), ({"completed": "7"}, 0), ([], 0), ({}, 0),
    ],
)  # fmt: skip
async def test_how_many_are_done(counts: Any, completed: int) -> None:
    told = {"id": "b", "status": "completed", "request_counts": counts}
    there = await answering(200, json.dumps(told).encode()).batch("b")
    assert there.completed == completed


@pytest.mark.parametrize("name", ["id", "output_file_id", "error_file_id"])
@pytest.mark.parametrize(
    "bad", [5, ["f"], {"id": "f"}, True, "a\nb", "a\0b", "f?x", "f#x", "a b", "\u00e9", "f" * 513]
)
async def test_an_id_that_is_none(name: str, bad: object) -> None:
    """Red before: what no path or column takes stopped the batch there for good."""
    told = {"id": "b", "status": "completed", name: bad}
    with pytest.raises(ProviderUnavailable, match=name):
        await answering(200, json.dumps(told).encode()).batch("b")


@pytest.mark.parametrize("file_id", ["file-A1", "batches/x:y.jsonl", "f" * 512])
async def test_ids_of_every_provider(file_id: str) -> None:
    told = {"id": "b", "status": "completed", "output_file_id": file_id, "error_file_id": ""}
    there = await answering(200, json.dumps(told).encode()).batch("b")
    assert (there.output_file_id, there.error_file_id) == (file_id, None)
