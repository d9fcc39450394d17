"""Who proves to belong here is heard, and only while it speaks; everybody else is not."""

import asyncio
import contextlib
import time
from unittest.mock import Mock

import pytest

from backends.secret import Secret
from gateway.clock import Clock
from gateway.fleet.peers import listener as hearing_module
from gateway.fleet.peers.frames import (
    HELLO_BYTES,
    TAG_BYTES,
    FrameWriter,
    Handshake,
    hello_frame,
    id_of,
)
from gateway.fleet.peers.listener import SILENCE_S, STRANGERS, PeerListener
from gateway.fleet.peers.peer_load import PeerEngineLoad

SECRET, WRONG = Secret("s" * 32), Secret("w" * 32)
OWN, THEIRS = b"o" * 16, b"t" * 16
SHARES = {b"e" * 16: PeerEngineLoad(2, 300)}
PATIENCE_S = 10.0


async def until(check) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not check():
        assert time.monotonic() < deadline, "never came true"
        await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def listening():
    hearing = PeerListener(OWN, SECRET, Clock())
    server = await hearing.listen("127.0.0.1", 0)
    try:
        yield hearing, server.sockets[0].getsockname()[1]
    finally:
        await hearing.close()


async def dial(port: int, secret: Secret = SECRET, own_id: bytes = THEIRS):
    """A connection whose proof was sent; (reader, writer, frames)."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    theirs = await reader.readexactly(HELLO_BYTES)
    assert id_of(theirs) == OWN
    ours = hello_frame(own_id, b"c" * 32)
    handshake = Handshake(secret, theirs, ours)
    writer.write(ours + handshake.proof("dials"))
    return reader, writer, FrameWriter(handshake.key())


async def test_a_host_is_heard_and_gone_with_its_connection() -> None:
    async with listening() as (hearing, port):
        reader, writer, frames = await dial(port)
        await reader.readexactly(TAG_BYTES)
        writer.write(frames.frame(SHARES))
        await until(lambda: hearing.hosts and hearing.hosts[THEIRS].shares == SHARES)
        writer.transport.abort()
        await until(lambda: not hearing.hosts)


async def test_one_that_falls_silent_counts_no_more() -> None:
    async with listening() as (hearing, port):
        _, writer, frames = await dial(port)
        writer.write(frames.frame(SHARES))
        await until(lambda: hearing.hosts)
        began_s = time.monotonic()
        writer.write(frames.frame(SHARES)[:-1])  # the most of a frame is none
        await until(lambda: not hearing.hosts)
        assert time.monotonic() - began_s > SILENCE_S / 2
        writer.transport.abort()


@pytest.mark.parametrize(
    "case", ["another secret", "no hello", "this host itself", "replayed", "too long", "negative"]
)
async def test_whoever_does_not_belong_here_is_not_heard(case: str) -> None:
    async with listening() as (hearing, port):
        if case == "no hello":
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\n" * 40)
        else:
            secret = WRONG if case == "another secret" else SECRET
            own_id = OWN if case == "this host itself" else THEIRS
            reader, writer, frames = await dial(port, secret, own_id)
            frame = frames.frame(SHARES)
            told = {
                "replayed": frame + frame,
                "too long": b"\xff" * 64,
                "negative": frames.frame({b"e" * 16: PeerEngineLoad(-1.0)}),
            }
            writer.write(told.get(case, frame))
        answer = b""
        with contextlib.suppress(OSError):
            answer = await asyncio.wait_for(reader.read(), PATIENCE_S)  # to the end: it hangs up
        if case in ("another secret", "this host itself"):
            assert answer == b""  # and proves nothing to it
        await until(lambda: not hearing.hosts)
        writer.transport.abort()


async def test_a_host_that_comes_again_is_counted_once() -> None:
    async with listening() as (hearing, port):
        before, writer, frames = await dial(port)
        writer.write(frames.frame(SHARES))
        await until(lambda: hearing.hosts)
        _, again, frames = await dial(port)
        told = {b"f" * 16: PeerEngineLoad(1)}
        again.write(frames.frame(told))
        await until(lambda: hearing.hosts[THEIRS].shares == told)
        assert len(hearing.hosts) == 1
        with contextlib.suppress(OSError):
            await asyncio.wait_for(before.read(), PATIENCE_S)
        writer.transport.abort()
        again.transport.abort()


async def test_there_is_an_end_to_hosts(monkeypatch) -> None:
    monkeypatch.setattr(hearing_module, "MOST_HOSTS", 1)
    async with listening() as (hearing, port):
        _, first, frames = await dial(port)
        first.write(frames.frame({}))
        await until(lambda: hearing.hosts)
        reader, second, frames = await dial(port, own_id=b"x" * 16)
        second.write(frames.frame({}))
        with contextlib.suppress(OSError):
            assert await asyncio.wait_for(reader.read(), PATIENCE_S) == b""  # no proof came
        assert b"x" * 16 not in hearing.hosts
        for writer in (first, second):
            writer.transport.abort()


async def test_strangers_are_few_and_keep_nobody_out() -> None:
    """Many connect and say nothing: a host is heard nevertheless, and they are hung up on."""
    async with listening() as (hearing, port):
        silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3 * STRANGERS)]
        _, writer, frames = await dial(port)
        writer.write(frames.frame(SHARES))
        await until(lambda: THEIRS in hearing.hosts)
        assert len(hearing._strangers) <= STRANGERS
        for reader, other in silent:
            with contextlib.suppress(OSError):
                await asyncio.wait_for(reader.read(), PATIENCE_S)
            other.transport.abort()
        await until(lambda: not hearing._strangers)
        writer.transport.abort()


async def test_who_is_accepted_while_it_closes_is_hung_up_on() -> None:
    """Red before: the task ended without its first step, and the connection stayed open."""
    hearing = PeerListener(OWN, SECRET, Clock())
    await hearing.listen("127.0.0.1", 0)
    before, after = Mock(), Mock()
    hearing._accept(Mock(), before)
    await hearing.close()
    hearing._accept(Mock(), after)
    before.transport.abort.assert_called_once()
    after.transport.abort.assert_called_once()
    assert not hearing._tasks
