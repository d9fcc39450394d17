"""Telemetry listens: over a socket that the engine binds, or one that it connects to."""

import asyncio
import contextlib
import logging

import msgspec
import pytest
import zmq
import zmq.asyncio

from backends.kvevents import PrefixMemory
from gateway.clock import Clock
from gateway.fleet.kv_event_listener import listen

CLEARED = msgspec.msgpack.encode([1.0, [{"type": "AllBlocksCleared"}]])


@contextlib.asynccontextmanager
async def listening(address: str, memory: PrefixMemory):
    task = asyncio.create_task(listen("pool:a/0", address, memory, Clock()))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def told(socket, memory: PrefixMemory, payload: bytes, number: int = 0) -> None:
    """Says it until it is heard: nobody knows when a subscriber has joined."""
    while not memory.forgotten_s:
        await socket.send_multipart([b"", number.to_bytes(8, "big"), payload])
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("binds", [True, False], ids=["engine binds", "engine connects"])
async def test_what_an_engine_tells_is_kept(tmp_path, free_port: int, binds: bool) -> None:
    address = f"ipc://{tmp_path / 'kv'}" if binds else f"tcp://127.0.0.1:{free_port}"
    memory, ours = PrefixMemory(), address if binds else f"tcp://*:{free_port}"
    with zmq.asyncio.Context() as context, context.socket(zmq.PUB) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        async with listening(ours, memory):
            (socket.bind if binds else socket.connect)(address)
            async with asyncio.timeout(20):
                await told(socket, memory, CLEARED)
    assert 0.0 < memory.forgotten_s <= Clock().now_s()


async def test_what_is_no_event_is_said_once_and_does_no_harm(tmp_path, caplog) -> None:
    address, memory = f"ipc://{tmp_path / 'kv'}", PrefixMemory()
    with zmq.asyncio.Context() as context, context.socket(zmq.PUB) as socket:
        socket.setsockopt(zmq.LINGER, 0)
        socket.bind(address)
        with caplog.at_level(logging.WARNING):
            async with listening(address, memory), asyncio.timeout(20):
                while not caplog.records:
                    await socket.send_multipart([b"", b"what", b"ever"])
                    await asyncio.sleep(0.01)
                await told(socket, memory, CLEARED)
    assert len(caplog.records) == 1
    assert "invalid KV event" in caplog.text


async def test_an_address_that_cannot_be_is_said(caplog) -> None:
    with caplog.at_level(logging.WARNING):
        await listen("pool:a/0", "ipc:///no/such/folder/*", PrefixMemory(), Clock())
    assert "cannot subscribe to KV events" in caplog.text
