import asyncio
from types import SimpleNamespace

import pytest

from backends.base import Deadlines
from backends.errors import IdleTimeout, UpstreamBroken
from backends.exchange import drain_exchange, pour_exchange, read_all
from backends.http import HttpClient
from backends.http_connection import HttpExchange
from backends.origin import Origin


class ScriptedExchange:
    """An exchange in memory: pieces, pauses, then an error or the end."""

    status = 200

    def __init__(self, *steps) -> None:
        self.headers: dict = {}
        self.steps = list(steps)
        self.closed = 0

    def __aiter__(self):
        return self

    async def __anext__(self) -> bytes:
        while self.steps:
            step = self.steps.pop(0)
            if isinstance(step, bytes):
                return step
            if isinstance(step, Exception):
                raise step
            await asyncio.sleep(step)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.closed += 1


async def test_pieces_are_poured_until_the_sink_has_enough():
    exchange, got = ScriptedExchange(b"a", b"b", 0.001, b"c"), []

    def sink(piece):
        got.append(piece)
        return piece != b"b"

    assert not await pour_exchange(exchange, sink)
    assert (got, exchange.closed) == ([b"a", b"b"], 0)
    assert await pour_exchange(exchange, sink)  # the rest of it
    assert got == [b"a", b"b", b"c"]
    assert await pour_exchange(exchange, sink)  # an answer that has ended has ended
    assert got == [b"a", b"b", b"c"]


async def test_what_breaks_while_it_is_poured_is_raised():
    got = []
    with pytest.raises(UpstreamBroken, match="gone"):
        await pour_exchange(
            ScriptedExchange(b"a", UpstreamBroken("gone")), lambda piece: not got.append(piece)
        )
    assert got == [b"a"]


async def test_the_whole_body_is_joined_and_the_exchange_closed():
    exchange = ScriptedExchange(b"a", b"b", b"c")
    assert await read_all(exchange, 3) == b"abc"
    assert exchange.closed == 1


async def test_a_body_above_the_limit_is_given_up():
    exchange = ScriptedExchange(b"aa", b"bb", b"cc")
    with pytest.raises(UpstreamBroken, match="larger than 3"):
        await read_all(exchange, 3)
    assert (exchange.closed, exchange.steps) == (1, [b"cc"])


async def test_a_body_above_the_time_is_given_up():
    exchange = ScriptedExchange(b"a", 30)
    with pytest.raises(IdleTimeout):
        await read_all(exchange, 3, timeout_s=0.02)
    assert exchange.closed == 1


async def test_draining_reads_to_the_end():
    exchange = ScriptedExchange(b"a", 0.001, b"b")
    await drain_exchange(exchange, grace_s=5)
    assert (exchange.closed, exchange.steps) == (1, [])


@pytest.mark.parametrize("steps", [(b"a", 30), (UpstreamBroken("gone"),), (b"x" * 9,) * 9])
async def test_draining_ends_quietly_whatever_comes(steps):
    exchange = ScriptedExchange(*steps)
    await drain_exchange(exchange, grace_s=0.02, limit_bytes=20)
    assert exchange.closed == 1


async def test_draining_hands_on_what_still_comes():
    taken: list[bytes] = []
    await drain_exchange(
        ScriptedExchange(b"a", b"b", b"x" * 30, b"c"), taken.append, limit_bytes=20
    )
    assert taken == [b"a", b"b"]


async def test_draining_keeps_a_real_connection(upstream, wire):
    upstream.script = lambda n: [
        wire.STREAM_HEAD, b"6\r\n[DONE]\r\n", 0.01, b"0\r\n\r\n",
    ]  # fmt: skip
    client = HttpClient()
    origin = Origin.parse(upstream.url)[0]
    for drained, connections in ((True, 1), (False, 0)):
        exchange = await client.open(
            origin, b"POST / HTTP/1.1\r\ncontent-length: 0\r\n\r\n", Deadlines()
        )
        assert await anext(aiter(exchange)) == b"[DONE]"
        await (drain_exchange(exchange) if drained else exchange.aclose())
        assert client.connections(origin) == connections
    await client.aclose()


def came(*parts: bytes, error: UpstreamBroken | None = None) -> HttpExchange:
    """An answer that has ended before anybody read it."""
    exchange = HttpExchange(SimpleNamespace(resume=lambda: None, abort=lambda: None), None)
    for part in parts:
        exchange.push(part)
    exchange.end(error)
    return exchange


async def test_draining_what_has_ended_waits_for_nothing(monkeypatch):
    monkeypatch.setattr("backends.exchange.asyncio.timeout", None)  # would fail when called
    for error in (None, UpstreamBroken("gone")):
        exchange = came(b"[DONE]", error=error)
        assert exchange.is_ended
        await drain_exchange(exchange)
        assert exchange.take_whole() is None


async def test_what_came_with_its_head_is_read_without_waiting():
    for parts in ((b"ab",), (b"a", b"b"), ()):
        assert await read_all(came(*parts), 2) == b"".join(parts)
    with pytest.raises(UpstreamBroken, match="larger than 1 bytes"):
        await read_all(came(b"ab"), 1)
    with pytest.raises(UpstreamBroken, match="gone"):
        await read_all(came(b"ab", error=UpstreamBroken("gone")), 9)
