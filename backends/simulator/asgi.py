"""Minimal ASGI helpers of the simulated servers: bodies, answers, client disconnects."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any

import msgspec

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

BODY_LIMIT_BYTES = 64 * 1024 * 1024
LABEL = (b"x-simulated", b"breakeven-simulator")
JSON = (b"content-type", b"application/json")
EVENTS = (b"content-type", b"text/event-stream; charset=utf-8")


class GoneError(Exception):
    """The client disconnected while it was sending its request."""


class DisconnectWatch:
    """A waiter that wakes for more tokens or for a client's disconnect."""

    def __init__(self, receive: Receive) -> None:
        self.gone = False
        self._event, self.left = asyncio.Event(), asyncio.Event()
        self._task = asyncio.ensure_future(self._listen(receive))

    def wake(self) -> None:
        self._event.set()

    async def wait(self, timeout_s: float | None = None) -> None:
        """Return when woken, or after the timeout."""
        if timeout_s is None:
            await self._event.wait()
        else:
            try:
                async with asyncio.timeout(timeout_s):
                    await self._event.wait()
            except TimeoutError:
                return
        self._event.clear()

    def close(self) -> None:
        self._task.cancel()

    async def _listen(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.gone = True
        self.left.set()
        self._event.set()


async def hear_nothing() -> MutableMapping[str, Any]:
    """Wait for ever, as the ASGI receive function of a request without a client."""
    await asyncio.get_running_loop().create_future()
    raise AssertionError


async def read_body(receive: Receive) -> bytes:
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise GoneError
        part = message.get("body", b"")
        size += len(part)
        if size > BODY_LIMIT_BYTES:
            raise GoneError
        parts.append(part)
        if not message.get("more_body"):
            return b"".join(parts)


async def start(send: Send, status: int, headers: list[tuple[bytes, bytes]]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [*headers, LABEL]})


async def more(send: Send, part: bytes) -> None:
    await send({"type": "http.response.body", "body": part, "more_body": True})


async def end(send: Send, part: bytes = b"") -> None:
    await send({"type": "http.response.body", "body": part})


async def reply(
    send: Send,
    status: int,
    body: bytes,
    *headers: tuple[bytes, bytes],
    content_type: tuple[bytes, bytes] = JSON,
) -> None:
    length = (b"content-length", str(len(body)).encode())
    await start(send, status, [content_type, length, *headers])
    await end(send, body)


async def reply_json(send: Send, status: int, value: Any, *headers: tuple[bytes, bytes]) -> None:
    await reply(send, status, msgspec.json.encode(value), *headers)


def header(scope: Mapping[str, Any], name: bytes) -> str:
    for key, value in scope["headers"]:
        if key == name:
            return str(value, "latin-1")
    return ""
