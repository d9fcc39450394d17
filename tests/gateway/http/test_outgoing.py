"""Answers without a length where no chunks are known, and a close that is not the socket's."""

import asyncio
import socket
from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.http.outgoing import ConnectionTransport, LazyFlowControl, wrap_unchunked

START = {"type": "http.response.start", "status": 200, "headers": [(b"a", b"b")]}


@pytest.fixture
def cycle() -> SimpleNamespace:
    """As uvicorn makes it; `expected` is what it held at each message."""
    return SimpleNamespace(chunked_encoding=None, expected_content_length=0, expected=[])


def sent(cycle: Any, *messages: dict[str, Any]) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        for message in messages:
            await send(message)

    async def send(message: dict[str, Any]) -> None:
        cycle.expected.append((cycle.chunked_encoding, cycle.expected_content_length))

    asyncio.run(wrap_unchunked(app, cycle)({}, None, send))


def body(data: bytes) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": True}


def test_a_stream_is_as_long_as_its_parts(cycle) -> None:
    sent(cycle, START, body(b"abc"), body(b""), {"type": "http.response.body"})
    assert cycle.expected == [(False, 0), (False, 3), (False, 0), (False, 0)]


def test_what_has_a_length_keeps_it(cycle) -> None:
    sent(cycle, START | {"headers": [(b"Content-Length", b"4")]}, body(b"ab"), body(b"cd"))
    assert cycle.expected == [(None, 0)] * 3  # uvicorn counts


def test_closing_is_whoever_elses_it_is_said_to_be() -> None:
    done: list[object] = []
    transport: Any = SimpleNamespace(write=done.append, is_closing=lambda: False)
    outgoing = ConnectionTransport(transport, lambda: done.append("closed"))
    outgoing.write(b"a")
    outgoing.close()
    assert (done, outgoing.is_closing()) == ([b"a", "closed"], False)


class Pipe:
    """A transport of which `left` bytes were not taken yet."""

    def __init__(self) -> None:
        self.left, self.closing, self.dropped = 20_000, False, asyncio.Event()
        self.socket: socket.socket | None = None

    def get_write_buffer_size(self) -> int:
        return self.left

    def get_extra_info(self, name: str) -> Any:
        return self.socket if name == "socket" else None

    def is_closing(self) -> bool:
        return self.closing

    def abort(self) -> None:
        self.dropped.set()


def test_what_the_kernel_holds_is_not_taken_either() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    pipe = Pipe()
    pipe.socket, flow = near, LazyFlowControl(cast("asyncio.Transport", pipe))
    near.setblocking(False)
    try:
        while near.send(bytes(65536)):
            pass
    except BlockingIOError:
        held = flow.unsent() - pipe.left
    assert held > 0
    far.recv(held, socket.MSG_WAITALL)
    assert flow.unsent() - pipe.left < held
    near.close()
    far.close()
    assert flow.unsent() == pipe.left


async def test_who_reads_slowly_is_waited_for() -> None:
    flow = LazyFlowControl(cast("Any", Pipe()))
    await flow.drain()  # nothing to wait for
    flow.resume_writing()
    for _ in range(2):
        flow.pause_writing()
        flow.pause_writing()
        waiting = asyncio.create_task(flow.drain())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.done()
        flow.resume_writing()
        await asyncio.wait_for(waiting, 5)
    assert not flow.write_paused


async def dropped(pipe: Pipe) -> None:
    async with asyncio.timeout(10):
        await pipe.dropped.wait()


async def test_who_takes_nothing_is_dropped_and_who_takes_little_is_not() -> None:
    pipe = Pipe()
    flow = LazyFlowControl(cast("Any", pipe), 0.1)
    flow.pause_writing()
    for _ in range(8):
        pipe.left -= 1
        await asyncio.sleep(0.05)
    assert not pipe.dropped.is_set()
    await dropped(pipe)


async def test_room_that_fills_again_was_made_by_the_client() -> None:
    """What lies here after it may be more than before, and is no sign of a stall."""
    pipe = Pipe()
    flow = LazyFlowControl(cast("Any", pipe), 1.0)
    for _ in range(10):
        flow.pause_writing()
        await asyncio.sleep(0.15)
        flow.resume_writing()
        pipe.left += 100
    assert not pipe.dropped.is_set()
    flow.pause_writing()
    flow.end()
    await asyncio.sleep(1.2)
    assert not pipe.dropped.is_set(), "its connection is gone"


@pytest.mark.parametrize("resumed", [False, True])
async def test_what_is_left_of_a_closed_connection_is_watched(resumed) -> None:
    """However little it is, and though there is room for more."""
    pipe = Pipe()
    flow = LazyFlowControl(cast("Any", pipe), 0.05)
    if resumed:
        flow.pause_writing()
    pipe.left, pipe.closing = 10, True
    if resumed:
        flow.resume_writing()
    else:
        flow.watch()
    await dropped(pipe)
