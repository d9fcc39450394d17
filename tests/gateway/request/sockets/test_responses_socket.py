"""One WebSocket by itself: why it ends, in which order, and how where its client reads nothing."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.errors import RequestError
from gateway.request.sockets import responses_socket as module
from gateway.request.sockets.responses_socket import ResponsesSocket, SocketEnd

ERROR = RequestError("bad_key", "This API key is unknown, revoked or expired.")


class Wire:
    """What a server does for one socket."""

    def __init__(self, serve: Any = None) -> None:
        self.now_s = 0.0
        self.sent: list[dict[str, Any]] = []
        self.reads = True
        self.counted = asyncio.Semaphore(0)
        self.aborted = asyncio.Event()
        self.messages: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        line = SimpleNamespace(abort=self.aborted.set, unsent=lambda: 0)
        scope = {"extensions": {"breakeven.socket": line}}
        clock: Any = SimpleNamespace(now_s=lambda: self.now_s)
        self.socket = ResponsesSocket(scope, self.send, "gw_x", clock, serve or self.echo)
        self.task = asyncio.create_task(self.socket.run(self.messages.get))

    async def send(self, message: dict[str, Any]) -> None:
        if not self.reads:
            await asyncio.Event().wait()
        self.sent.append(message)
        self.counted.release()

    async def echo(self, socket: ResponsesSocket, text: str | bytes) -> None:
        await socket.send_text(f"answer to {text!r}")

    def say(self, kind: str, **members: Any) -> None:
        self.messages.put_nowait({"type": kind, **members})

    async def ended(self) -> list[Any]:
        await asyncio.wait_for(self.task, 5)
        return [message.get("text") or message["code"] for message in self.sent]


async def test_messages_are_answered_in_their_order_and_whoever_leaves_is_told_nothing() -> None:
    wire = Wire()
    wire.say("websocket.receive", text="a")
    wire.say("websocket.receive", text=None, bytes=b"b")
    for _ in range(2):
        await wire.counted.acquire()
    wire.say("websocket.disconnect")
    assert await wire.ended() == ["answer to 'a'", "answer to b'b'"]


@pytest.mark.parametrize(
    ("now_s", "code", "told"),
    [(50.0, None, 0), (70.0, 1001, 0), (120.0, 1000, 1)],
)
async def test_what_is_idle_or_old_is_closed(now_s: float, code: int | None, told: int) -> None:
    wire = Wire()
    await asyncio.sleep(0)
    wire.socket.end_late(now_s, idle_s=60, total_s=100)
    if code is None:
        assert not wire.task.done()
        wire.say("websocket.disconnect")
        assert await wire.ended() == []
        return
    ended = await wire.ended()
    assert ended[-1] == code
    assert len(ended) == 1 + told
    assert not told or "websocket_connection_limit_reached" in ended[0]


async def test_what_is_being_answered_is_no_idleness_and_is_finished_first() -> None:
    release = asyncio.Event()

    async def serve(socket: ResponsesSocket, text: str | bytes) -> None:
        await release.wait()
        await socket.send_text("done")

    wire = Wire(serve)
    wire.say("websocket.receive", text="a")
    wire.say("websocket.receive", text="never asked")
    for _ in range(5):
        await asyncio.sleep(0)
    wire.socket.end_late(90.0, idle_s=60, total_s=100)
    wire.say("breakeven.drain")
    for _ in range(5):
        await asyncio.sleep(0)
    assert wire.sent == []
    release.set()
    assert await wire.ended() == ["done", 1012]


async def test_a_cut_waits_for_no_answer() -> None:
    ended = asyncio.Event()

    async def serve(socket: ResponsesSocket, _: str | bytes) -> None:
        socket.turn = SimpleNamespace(hang_up=lambda: None)  # it is read on without its client
        await ended.wait()

    wire = Wire(serve)
    wire.say("websocket.receive", text="a")
    for _ in range(5):
        await asyncio.sleep(0)
    wire.socket.cut(SocketEnd(1008, "the key ended", ERROR))
    for _ in range(2):
        await wire.counted.acquire()
    assert not wire.task.done()  # nothing of a request is dropped
    ended.set()
    assert (await wire.ended())[-1] == 1008
    assert "invalid_api_key" in wire.sent[0]["text"]


async def test_the_server_gives_up_waiting_and_the_answer_is_cancelled() -> None:
    async def serve(socket: ResponsesSocket, _: str | bytes) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await socket.send_text("the gateway is restarting")

    wire = Wire(serve)
    wire.say("websocket.receive", text="a")
    for _ in range(5):
        await asyncio.sleep(0)
    wire.task.cancel()
    assert await wire.ended() == ["the gateway is restarting", 1012]


async def test_who_reads_nothing_is_dropped(monkeypatch) -> None:
    monkeypatch.setattr(module, "CLOSE_S", 0.01)
    wire = Wire()
    wire.reads = False
    wire.socket.end(SocketEnd(1008, "the key ended", ERROR))
    await asyncio.wait_for(wire.task, 5)
    assert wire.aborted.is_set()


async def test_a_defect_ends_the_socket_and_is_logged(caplog) -> None:
    async def serve(socket: ResponsesSocket, _: str | bytes) -> None:
        raise KeyError("x")

    wire = Wire(serve)
    wire.say("websocket.receive", text="a")
    assert await wire.ended() == [1011]
    assert "a turn of a WebSocket failed" in caplog.text
