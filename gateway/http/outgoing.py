"""Corrections of uvicorn's responses: last one of a connection, HTTP/1.0, flow control.

The flow control needs less memory per connection and drops clients that stop reading.
"""

import asyncio
import fcntl
import math
import sys
import termios
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle


class LazyFlowControl(FlowControl):
    """Flow control that creates its event only for slow clients; the event takes 0.8 KB."""

    def __init__(self, transport: asyncio.Transport, stall_s: float = math.inf) -> None:
        """`stall_s` is the maximum time without progress before the connection is dropped."""
        self._transport = transport
        self.read_paused = self.write_paused = False
        self._stall_s = stall_s
        self._looking: asyncio.TimerHandle | None = None

    async def drain(self) -> None:
        if self.write_paused:
            await self._is_writable_event.wait()

    def pause_writing(self) -> None:
        if not self.write_paused:
            self.write_paused = True
            self._is_writable_event = asyncio.Event()
            self.watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self.end()
        if self._transport.is_closing():
            self.watch()

    def unsent(self) -> int:
        """Return the bytes that the client has not received, in the process and in the kernel.

        The kernel accepts more only after about 1 MiB has left it, which takes a slow line a
        minute.
        """
        return unsent_bytes(self._transport)

    def watch(self) -> None:
        """Require progress from now on, also while closing waits for the rest to be sent."""
        left = self._transport.get_write_buffer_size()
        if self._looking is None and left and self._stall_s < math.inf:
            loop = asyncio.get_running_loop()
            self._looking = loop.call_later(self._stall_s, self._check_progress, self.unsent())

    def _check_progress(self, before: int) -> None:
        self._looking = None
        if self.unsent() >= before:
            self._transport.abort()
        else:
            self.watch()

    def end(self) -> None:
        """Stop requiring progress."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None


def unsent_bytes(transport: asyncio.Transport) -> int:
    """Return the bytes that a client has not received: in the transport and in the kernel."""
    raw = transport.get_extra_info("socket")
    queued = 0 if raw is None else _queued_bytes(raw.fileno())
    return transport.get_write_buffer_size() + queued


def _queued_bytes(descriptor: int) -> int:
    """Return the bytes that the peer has not acknowledged; 0 if closed or not TCP."""
    try:
        found = fcntl.ioctl(descriptor, termios.TIOCOUTQ, bytes(4))
    except (OSError, ValueError):
        return 0
    return int.from_bytes(found, sys.byteorder)


class ConnectionTransport:
    """Transport as seen by the responses of one connection, with its own `close`."""

    __slots__ = ("close", "is_closing", "write")

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self.write, self.is_closing, self.close = transport.write, transport.is_closing, close


def wrap_unchunked(app: Any, cycle: RequestResponseCycle) -> Any:
    """Wrap `app` for a client of HTTP/1.0, which does not know chunked encoding.

    A response without a length ends with the connection; uvicorn would send it in chunks.
    """

    async def run(scope: Any, receive: Any, send: Any) -> None:
        unbounded = False

        async def whole(message: Any) -> None:
            nonlocal unbounded
            if message["type"] == "http.response.start":
                names = {name.lower() for name, _ in message.get("headers", ())}
                unbounded = b"content-length" not in names
                cycle.chunked_encoding = False if unbounded else None
            elif unbounded:  # the expected length is that of this part
                cycle.expected_content_length = len(message.get("body", b""))
            await send(message)

        await app(scope, receive, whole)

    return run
