import asyncio
import socket
import ssl

import pytest

from backends.base import Deadlines
from backends.errors import (
    HeadTimeout,
    InvalidResponse,
    UpstreamBroken,
    UpstreamOverloaded,
    UpstreamUnreachable,
)
from backends.exchange import read_all
from backends.http import HttpClient, PoolLimits
from backends.origin import Origin

DEADLINES = Deadlines(connect_s=5, head_s=5, idle_s=5)
REQUEST = b"POST /v1/x HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}"


async def ask(client: HttpClient, url: str, deadlines: Deadlines = DEADLINES) -> bytes:
    exchange = await client.open(Origin.parse(url)[0], REQUEST, deadlines)
    return await read_all(exchange, 1 << 30)


@pytest.fixture
async def client():
    made = HttpClient()
    yield made
    await made.aclose()


async def test_a_connection_is_kept_and_reused(upstream, wire, client):
    upstream.script = lambda n: [wire.respond(b'{"n":%d}' % n)]
    assert [await ask(client, upstream.url) for _ in range(3)] == [
        b'{"n":1}', b'{"n":2}', b'{"n":3}',
    ]  # fmt: skip
    assert upstream.connections == 1


async def test_a_connection_that_says_close_is_not_reused(upstream, wire, client):
    upstream.script = lambda n: [wire.respond(headers="connection: close\r\n")]
    for _ in range(2):
        await ask(client, upstream.url)
    assert upstream.connections == 2


async def test_the_newest_idle_connection_is_taken_first(upstream, wire, client):
    upstream.script = lambda n: [0.05, wire.respond(b"%d" % n)]
    await asyncio.gather(*[ask(client, upstream.url) for _ in range(3)])
    origin = Origin.parse(upstream.url)[0]
    idle = list(client._pools[origin]._idle)
    for _ in range(4):
        await ask(client, upstream.url)
        assert list(client._pools[origin]._idle) == idle
    assert upstream.connections == 3


async def test_idle_connections_are_closed_after_their_time(upstream, wire):
    client = HttpClient(PoolLimits(idle_s=0.05))
    upstream.script = lambda n: [wire.respond()]
    await ask(client, upstream.url)
    origin = Origin.parse(upstream.url)[0]
    assert client.connections(origin) == 1
    await upstream.until(lambda: client.connections(origin) == 0 and upstream.open_now == 0)


async def test_small_writes_are_not_held_back(upstream, wire, client):
    upstream.script = lambda n: [wire.respond()]
    await ask(client, upstream.url)
    (kept,) = client._pools[Origin.parse(upstream.url)[0]]._idle
    raw = kept._transport.get_extra_info("socket")
    assert raw.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("ending", ["CLOSE", "RESET"])
async def test_a_kept_connection_that_died_is_retried_once(upstream, wire, client, ending):
    script = {1: [wire.respond(b"1")], 2: [getattr(wire, ending)], 3: [wire.respond(b"3")]}
    upstream.script = script.__getitem__
    assert await ask(client, upstream.url) == b"1"
    assert await ask(client, upstream.url) == b"3"
    assert upstream.connections == 2
    assert client.connections(Origin.parse(upstream.url)[0]) == 1


async def test_the_retry_happens_only_once(upstream, wire, client):
    upstream.script = lambda n: [wire.respond()] if n == 1 else [wire.CLOSE]
    await ask(client, upstream.url)
    with pytest.raises(InvalidResponse):
        await ask(client, upstream.url)
    assert len(upstream.requests) == 3
    assert client.connections(Origin.parse(upstream.url)[0]) == 0


async def test_nothing_is_retried_after_the_first_byte(upstream, wire, client):
    upstream.script = lambda n: [wire.respond()] if n == 1 else [b"H", wire.CLOSE]
    await ask(client, upstream.url)
    with pytest.raises(InvalidResponse):
        await ask(client, upstream.url)
    assert len(upstream.requests) == 2


@pytest.mark.parametrize("ending", ["CLOSE", "RESET"])
async def test_a_request_that_was_worked_on_is_not_sent_again(
    upstream, wire, client, monkeypatch, ending
):
    """An engine that dies over it, half a minute later: asked twice, and the books had one."""
    monkeypatch.setattr("backends.http_connection.STALE_S", 0.05)
    upstream.script = lambda n: [wire.respond()] if n == 1 else [0.2, getattr(wire, ending)]
    await ask(client, upstream.url)
    with pytest.raises(InvalidResponse):
        await ask(client, upstream.url)
    assert len(upstream.requests) == 2


async def test_a_fresh_connection_that_dies_is_not_retried(upstream, wire, client):
    upstream.script = lambda n: [wire.CLOSE]
    with pytest.raises(InvalidResponse):
        await ask(client, upstream.url)
    assert len(upstream.requests) == 1


async def test_nobody_listens(client, free_port):
    with pytest.raises(UpstreamUnreachable):
        await ask(client, f"http://127.0.0.1:{free_port}")
    assert client.connections(Origin("http", "127.0.0.1", free_port)) == 0


async def test_connections_are_bounded_and_handed_on(upstream, wire):
    client = HttpClient(PoolLimits(connections=2, waiters=8))
    upstream.script = lambda n: [0.02, wire.respond(b"%d" % n)]
    answers = await asyncio.gather(*[ask(client, upstream.url) for _ in range(8)])
    assert len(set(answers)) == 8
    assert upstream.connections == 2
    await client.aclose()


async def test_waiting_for_a_connection_is_bounded_in_time_and_number(upstream, wire):
    client = HttpClient(PoolLimits(connections=1, waiters=1))
    upstream.script = lambda n: [wire.HANG]
    busy = asyncio.create_task(ask(client, upstream.url))
    await upstream.until(lambda: upstream.requests)
    queued = asyncio.create_task(ask(client, upstream.url, Deadlines(connect_s=0.1)))
    await asyncio.sleep(0)
    with pytest.raises(UpstreamOverloaded):
        await ask(client, upstream.url)
    with pytest.raises(UpstreamOverloaded):
        await queued
    busy.cancel()
    await asyncio.gather(busy, return_exceptions=True)
    assert client.connections(Origin.parse(upstream.url)[0]) == 0


async def test_a_dying_connection_gives_its_slot_to_a_waiter(upstream, wire):
    client = HttpClient(PoolLimits(connections=1))
    upstream.script = lambda n: [0.05, wire.RESET] if n == 1 else [wire.respond(b"ok")]
    first = asyncio.create_task(ask(client, upstream.url))
    await upstream.until(lambda: upstream.requests)
    assert await ask(client, upstream.url) == b"ok"
    with pytest.raises(InvalidResponse):
        await first
    await client.aclose()


@pytest.mark.parametrize("pause_ms", range(0, 30, 3))
async def test_cancelling_at_any_moment_leaks_no_slot(upstream, wire, pause_ms):
    client = HttpClient(PoolLimits(connections=3, waiters=64))
    upstream.script = lambda n: [0.003, wire.STREAM_HEAD, b"3\r\nabc\r\n", 0.005, b"0\r\n\r\n"]
    tasks = [asyncio.create_task(ask(client, upstream.url)) for _ in range(30)]
    await asyncio.sleep(pause_ms / 1000)
    for task in tasks[::2]:
        task.cancel()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(result == b"abc" for result in results[1::2])
    origin = Origin.parse(upstream.url)[0]
    assert 0 <= client.connections(origin) <= 3
    assert len(client._pools[origin]._idle) == client.connections(origin)
    assert await asyncio.gather(*[ask(client, upstream.url) for _ in range(6)]) == [b"abc"] * 6
    await client.aclose()
    assert client.connections(origin) == 0


async def test_the_head_deadline_is_its_own(upstream, wire, client):
    upstream.script = lambda n: [wire.HANG]
    with pytest.raises(HeadTimeout):
        await ask(client, upstream.url, Deadlines(head_s=0.05, idle_s=30))
    await upstream.until(lambda: upstream.open_now == 0)
    assert client.connections(Origin.parse(upstream.url)[0]) == 0


async def test_interim_answers_do_not_extend_the_head_deadline(upstream, wire, client):
    dribble = [step for _ in range(100) for step in (b"HTTP/1.1 102 Processing\r\n\r\n", 0.01)]
    upstream.script = lambda n: [*dribble, wire.HANG]
    with pytest.raises(HeadTimeout):
        await ask(client, upstream.url, Deadlines(head_s=0.15))


async def test_closing_the_client_breaks_what_is_open(upstream, wire):
    client = HttpClient()
    upstream.script = lambda n: [wire.STREAM_HEAD, b"1\r\na\r\n", wire.HANG]
    exchange = await client.open(Origin.parse(upstream.url)[0], REQUEST, DEADLINES)
    assert await anext(aiter(exchange)) == b"a"
    await client.aclose()
    with pytest.raises(UpstreamBroken):
        await anext(aiter(exchange))


async def test_tls_with_a_trusted_certificate_sends_the_name(certificate, tls_upstream, wire):
    names = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.sni_callback = lambda _socket, name, _context: names.append(name)
    server = await tls_upstream(context)
    server.script = lambda n: [wire.STREAM_HEAD, wire.chunked(b"se", b"cret")]
    client = HttpClient(tls=ssl.create_default_context(cafile=certificate))
    assert await ask(client, server.url) == b"secret"
    assert await ask(client, server.url) == b"secret"
    assert (names, server.connections) == (["localhost"], 1)
    await client.aclose()


async def test_tls_with_an_unknown_certificate_is_refused(certificate, tls_upstream, client):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = await tls_upstream(context)
    with pytest.raises(UpstreamUnreachable, match="certificate"):
        await ask(client, server.url)
    assert server.requests == []
    assert client.connections(Origin.parse(server.url)[0]) == 0


async def test_tls_with_the_certificate_of_another_name_is_refused(certificate, tls_upstream):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    server = await tls_upstream(context)
    client = HttpClient(tls=ssl.create_default_context(cafile=certificate))
    with pytest.raises(UpstreamUnreachable, match="certificate"):
        await ask(client, server.url.replace("localhost", "127.0.0.1"))
    assert server.requests == []
    await client.aclose()


async def test_plain_http_behind_an_https_address_is_refused(upstream, client):
    with pytest.raises(UpstreamUnreachable):
        await ask(client, upstream.url.replace("http://", "https://"))
    assert client.connections(Origin.parse(upstream.url.replace("http://", "https://"))[0]) == 0


@pytest.mark.parametrize("pause_s", [0.0, 0.001, 0.003])
async def test_a_server_that_gives_up_kept_connections_any_moment_costs_no_request(
    upstream, wire, client, pause_s
):
    """It closes while the next request is on its way: the race of every keep-alive."""
    upstream.script = lambda n: [wire.respond(b"ok"), pause_s * (n % 4), wire.CLOSE]
    for _ in range(60):
        assert await ask(client, upstream.url) == b"ok"
        await asyncio.sleep(pause_s)
    assert upstream.connections > 10
