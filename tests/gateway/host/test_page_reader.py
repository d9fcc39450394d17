"""Pages are read whole over one connection, within bounds, with the headers of their engine."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from backends.address_policy import INSIDE
from backends.errors import RequestUnsendable, UpstreamUnreachable, WrongAddress
from backends.http import HttpClient
from backends.metrics import ProbeFailed
from gateway.host import page_reader
from gateway.host.page_reader import PageReader, PageText, read_metrics

Answer = Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]


class PageServer:
    """Answers requests over raw sockets; `heads` are what was asked, by connection."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer
        self.heads: list[list[bytes]] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads: list[bytes] = []
        self.heads.append(heads)
        try:
            while True:
                heads.append(await reader.readuntil(b"\r\n\r\n"))
                await self._answer(heads[-1], writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            writer.close()


def plain(text: str, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(text)}\r\n\r\n{text}".encode()


@asynccontextmanager
async def pages_of(answer: Answer, **headers: str) -> AsyncIterator[tuple[PageReader, PageServer]]:
    served, client = PageServer(answer), HttpClient()
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield PageReader(client, f"http://127.0.0.1:{port}/below", INSIDE, headers), served
    finally:
        await client.aclose()
        server.close()


async def test_pages_are_read_over_one_connection_with_the_headers() -> None:
    async def answer(head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(plain("x" * 3072) if b"/metrics " in head else plain("no", "404 Not Found"))

    async with pages_of(answer, authorization="Bearer sk-engine") as (pages, served):
        assert await pages.read("/metrics") == PageText(200, "x" * 3072)
        assert await pages.read("/other") == PageText(404, "no")
    assert len(served.heads) == 1
    first, second = served.heads[0]
    assert first.startswith(b"GET /below/metrics HTTP/1.1\r\n")
    assert second.startswith(b"GET /below/other HTTP/1.1\r\n")
    assert b"\r\nauthorization: Bearer sk-engine\r\n" in first


async def test_a_page_without_an_end_is_refused(monkeypatch) -> None:
    """It was read for ever, into memory."""
    monkeypatch.setattr(page_reader, "PAGE_BYTES", 65_536)

    async def answer(_head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 4096)
            await writer.drain()

    async with pages_of(answer) as (pages, _):
        with pytest.raises(ProbeFailed, match="larger than 65,536 bytes"):
            await pages.read("/metrics")


@pytest.mark.parametrize("begins", [b"", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx"])
async def test_a_server_that_says_no_more_is_silent(monkeypatch, begins: bytes) -> None:
    monkeypatch.setattr(page_reader, "ANSWER_S", 0.05)
    monkeypatch.setattr(page_reader, "PAGE_S", 0.2)

    async def answer(_head: bytes, writer: asyncio.StreamWriter) -> None:
        writer.write(begins)
        await asyncio.Event().wait()

    async with pages_of(answer) as (pages, _):
        with pytest.raises(TimeoutError):
            await pages.read("/metrics")


async def test_where_nobody_listens_there_is_no_answer() -> None:
    listener = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    listener.close()
    await listener.wait_closed()
    client = HttpClient()
    with pytest.raises(UpstreamUnreachable):
        await PageReader(client, f"http://127.0.0.1:{port}", INSIDE, {}).read("/metrics")
    await client.aclose()


async def test_a_header_that_would_begin_another_is_not_sent() -> None:
    pages = PageReader(HttpClient(), "http://127.0.0.1:1", INSIDE, {"authorization": "a\r\nb: c"})
    with pytest.raises(RequestUnsendable):
        await pages.read("/metrics")


@pytest.mark.parametrize(
    ("answers", "found"),
    [
        ({"/metrics": PageText(200, "a 1")}, ("/metrics", "a 1")),
        (
            {"/metrics": PageText(200, "[]"), "/prometheus/metrics": PageText(200, "b 1")},
            ("/prometheus/metrics", "b 1"),
        ),
        ({"/metrics": PageText(500, "")}, "500 at /metrics"),
        (
            {"/metrics": PageText(200, "[]"), "/prometheus/metrics": PageText(404, "")},
            "404 at /metrics",
        ),
    ],
)
async def test_metrics_are_looked_for_where_engines_have_them(answers, found) -> None:
    class KnownPages:
        async def read(self, path: str) -> PageText:
            return answers[path]

    if isinstance(found, tuple):
        assert await read_metrics(KnownPages(), "/metrics") == found
    else:
        with pytest.raises(WrongAddress, match=found):
            await read_metrics(KnownPages(), "/metrics")
