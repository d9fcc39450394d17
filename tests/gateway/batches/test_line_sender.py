"""One try over HTTP: what came, or that nothing came, and whether it may have been heard."""

import asyncio
import socket

import httpx
import pytest

from gateway.batches.authority import TicketAuthority
from gateway.batches.line_outcome import ConnectionLost, LineAnswer
from gateway.batches.line_sender import LineSender
from ledger.batches.lines import LineClaim

CLAIM = LineClaim(
    "batch_1", 3, "c", "own", b'{"model":"own"}', 2, 1, "/v1/chat/completions", "k", 9
)
AUTHORITY = TicketAuthority(b"s" * 32)


def sender(answer=None, url: str = "http://127.0.0.1:1") -> LineSender:
    made = LineSender(url, AUTHORITY, total_s=1.0, at_once=4, now_us=lambda: 5)
    if answer is not None:
        made._client = httpx.AsyncClient(base_url=url, transport=httpx.MockTransport(answer))
    return made


async def test_it_asks_with_a_ticket_for_this_try() -> None:
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        headers = {"x-request-id": "r", "x-should-retry": "false", "x-breakeven-ignored": "a"}
        return httpx.Response(429, content=b"{}", headers=headers)

    told = await sender(answer).send(CLAIM, spill=True)
    assert told == LineAnswer(429, "r", b"{}", retry=False, ignored="a")
    (request,) = asked
    assert request.url.path == "/batch-lines/v1/chat/completions"
    assert request.content == CLAIM.body
    token = request.headers["authorization"].removeprefix("Bearer ")
    ticket = AUTHORITY.read(token, now_us=5)
    assert (ticket.key_id, ticket.request_id, ticket.spill) == ("k", "batch_1-3-2", True)


@pytest.mark.parametrize(("fault", "retry"), [("upstream", None), ("limit", False)])
async def test_a_target_that_people_mend_is_asked_again(fault: str, retry: bool | None) -> None:
    """`x-should-retry: false` is for clients that wait seconds; a batch has a day."""

    def answer(_: httpx.Request) -> httpx.Response:
        headers = {"x-should-retry": "false", "x-breakeven-fault": fault}
        return httpx.Response(502, content=b"{}", headers=headers)

    told = await sender(answer).send(CLAIM, spill=True)
    assert isinstance(told, LineAnswer)
    assert (told.retry, told.fault) == (retry, fault)


@pytest.mark.parametrize(
    ("error", "sent"),
    [(httpx.ConnectError, False), (httpx.ConnectTimeout, False), (httpx.ReadError, True),
     (httpx.RemoteProtocolError, True), (httpx.ReadTimeout, True)],
)  # fmt: skip
async def test_no_answer(error, sent: bool) -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        raise error("no")

    assert await sender(answer).send(CLAIM, spill=False) == ConnectionLost(sent=sent)


async def test_nobody_listens() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        this_sender = sender(url=f"http://127.0.0.1:{free.getsockname()[1]}")
        assert await this_sender.send(CLAIM, spill=False) == ConnectionLost(sent=False)
        await this_sender.aclose()


@pytest.mark.parametrize("listens", [True, False])
async def test_what_left_is_known_by_the_connection(free_port: int, listens: bool) -> None:
    arrived = bytearray()

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.extend(await reader.read(65536))
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1] if listens else free_port
    this_sender = sender(url=f"http://127.0.0.1:{port}")
    assert await this_sender.send(CLAIM, spill=False) == ConnectionLost(sent=listens)
    await this_sender.aclose()
    server.close()
    assert bool(arrived) is listens


async def test_an_address_that_is_none_was_not_sent_to() -> None:
    this_sender = sender(url="ftp://127.0.0.1:1")
    assert await this_sender.send(CLAIM, spill=False) == ConnectionLost(sent=False)
    await this_sender.aclose()
