"""One HTTP/1.1 connection to a model server, and the answer in progress on it.

llhttp (httptools) parses. This module adds: an answer must end by its framing, heads and trailers
have limits, a slow reader pauses the socket, and each wait has a deadline. Deadlines share one
timer that is moved only if it would fire too late, so that chunks cost no timer. Dropping an
unfinished answer aborts the socket at once. A connection is reusable only if the answer ended by
its framing and no bytes followed.
"""

import asyncio
import math
import socket
from collections.abc import Callable, Mapping
from typing import cast

import httptools

from backends.base import Sink
from backends.errors import BackendError, HeadTimeout, IdleTimeout, InvalidResponse, UpstreamBroken

HEAD_LIMIT_BYTES = 64 * 1024
HEADER_LIMIT_COUNT = 128
READ_BYTES = 16 * 1024  # at once: whatever comes faster than it is taken stays in the kernel
BUFFER_LIMIT_BYTES = 8 * 1024
STALE_S = 2.0  # what had been given up says so after a round trip; who reads on has begun to work


class StaleConnection(Exception):
    """A kept connection died before any byte of the answer: the server had closed it."""


class HttpExchange:
    """An answer in progress: `status`, `headers`, and the body as it arrives."""

    __slots__ = (
        "_connection",
        "_error",
        "_idle_s",
        "_parts",
        "_sink",
        "_size",
        "_waiter",
        "headers",
        "status",
    )

    def __init__(self, connection: "UpstreamConnection", idle_s: float | None) -> None:
        self.status = 0
        self.headers: Mapping[str, str] = {}
        self._connection: UpstreamConnection | None = connection
        self._error: BackendError | StaleConnection | None = None
        self._idle_s = idle_s
        self._parts: list[bytes] = []
        self._sink: Sink | None = None
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None

    def __aiter__(self) -> "HttpExchange":
        return self

    async def __anext__(self) -> bytes:
        """Return all bytes received since the last call; wait only if there are none."""
        while not self._parts:
            if self._error is not None:
                raise self._error
            if self._connection is None:
                raise StopAsyncIteration
            await self._wait(self._connection, self._idle_s)
        return self._take_parts()

    @property
    def is_ended(self) -> bool:
        """Return whether the answer has ended on the wire; its bytes may still be unread."""
        return self._connection is None

    def take_whole(self) -> bytes | None:
        """Return the unread rest of a complete answer; `None` if more is to come."""
        if self._connection is not None or self._error is not None or not self._parts:
            return None
        return self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)

    async def pour(self, sink: Sink) -> bool:
        """Pass each chunk to `sink` on arrival, which saves waking a task.

        Returns true at the answer's end, and false once `sink` stops; later bytes are buffered.
        """
        self._sink = sink
        try:
            self._forward_parts()
            while self._sink is not None:
                if self._connection is None:
                    if self._error is not None:
                        raise self._error
                    return True
                await self._wait(self._connection, self._idle_s)
        finally:
            self._sink = None
        return False

    async def aclose(self) -> None:
        """Close the answer; before its end, this aborts the connection."""
        connection, self._connection = self._connection, None
        self._parts = []
        if connection is not None:
            connection.abort()

    async def head(self, deadline_s: float | None) -> None:
        """Wait for status and headers."""
        if self.status == 0 and self._connection is not None:
            await self._wait(self._connection, deadline_s)
        if self.status == 0 and self._error is not None:
            raise self._error

    async def _wait(self, connection: "UpstreamConnection", seconds: float | None) -> None:
        """Wait for the next event of the connection.

        The connection disarms the deadline itself: when this task runs, it may serve another
        request.
        """
        connection.arm(seconds)
        self._waiter = connection.loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def _take_parts(self) -> bytes:
        parts, self._parts, self._size = self._parts, [], 0
        if self._connection is not None:
            self._connection.resume()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _forward_parts(self) -> None:
        if self._parts and self._sink is not None and not self._sink(self._take_parts()):
            self._sink = None

    def notify(self) -> None:
        """Pass received bytes to the sink while it accepts them, else wake the waiting task."""
        if self._sink is not None:
            self._forward_parts()
            if self._sink is not None and self._connection is not None:
                self._connection.arm(self._idle_s)
                return
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def push(self, data: bytes) -> int:
        """Buffer a chunk of the body. Return the number of unread bytes."""
        self._parts.append(data)
        self._size += len(data)
        return self._size

    def end(self, error: BackendError | StaleConnection | None) -> None:
        """Mark the answer as complete, or as failed with `error`."""
        self._connection = None
        if self._error is None:
            self._error = error
        self.notify()


class UpstreamConnection(asyncio.BufferedProtocol):
    """The socket side. `on_free(connection, reusable)` is called once per answer or failure.

    `room` is a read buffer of `READ_BYTES`, empty again when a read returns, so connections of one
    loop may share it. A loop's own reads are sixteen times as large, and up to three of them pile
    up for a client that does not read.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        on_free: Callable[["UpstreamConnection", bool], None],
        room: memoryview,
    ) -> None:
        self.loop = loop
        self._room = room
        self.idle_since = 0.0
        self.used = False
        self._on_free = on_free
        self._transport: asyncio.Transport | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._exchange: HttpExchange | None = None
        self._closed = False
        self._paused = False
        self._deadline = math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._reset()

    def _reset(self) -> None:
        self._headers: list[tuple[bytes, bytes]] = []
        self._header_bytes = 0
        self._silent_bytes = 0  # received since the last byte of body
        self._received = False
        self._sent_s = 0.0
        self._head_done = False
        self._news = False  # something came that a reader waits for
        self._until_close = False
        self._complete = False
        self._reusable = False
        self._excess = False
        self._fault: str | None = None

    # -- the exchange's side

    def start(self, payload: bytes, idle_s: float | None) -> HttpExchange:
        """Send one request."""
        if self._closed or self._transport is None or self._transport.is_closing():
            raise StaleConnection
        self._reset()
        exchange = self._exchange = HttpExchange(self, idle_s)
        self._sent_s = self.loop.time()
        self._transport.write(payload)
        return exchange

    def arm(self, seconds: float | None) -> None:
        """Set the deadline of the next event; `None` sets none."""
        if seconds is None:
            return
        self._deadline = deadline = self.loop.time() + seconds
        timer = self._timer
        if timer is None or timer.when() > deadline:
            if timer is not None:
                timer.cancel()
            self._timer = self.loop.call_at(deadline, self._check_deadline)

    def resume(self) -> None:
        if self._paused and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()

    def abort(self, error: BackendError | None = None) -> None:
        """Close at once; an answer in progress ends with `error`."""
        if self._transport is not None:
            self._transport.abort()
        self._close(error)

    def _check_deadline(self) -> None:
        self._timer = None
        if self._deadline == math.inf:
            return
        if self.loop.time() + 0.001 < self._deadline:
            self._timer = self.loop.call_at(self._deadline, self._check_deadline)
        elif self._head_done:
            self.abort(IdleTimeout("the answer went silent"))
        else:
            self.abort(HeadTimeout("no answer in time"))

    # -- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = made = cast("asyncio.Transport", transport)  # uvloop's is not a subclass
        self._parser = httptools.HttpResponseParser(self)
        if self._closed:
            made.abort()
            return
        raw = made.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - asyncio's signature
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        self.data_received(self._room[:nbytes])

    def data_received(self, data: bytes | memoryview) -> None:
        parser, exchange = self._parser, self._exchange
        if parser is None or exchange is None:
            self.abort()  # unrequested bytes are not an answer
            return
        self._received = True
        self._silent_bytes += len(data)
        try:
            parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            if not self._complete:
                self._fault = self._fault or f"malformed HTTP ({type(error).__name__})"
            self._excess = True
        if self._silent_bytes > HEAD_LIMIT_BYTES and not self._complete:
            self._fault = self._fault or "head or trailers over the limit"
        if self._fault is not None and not self._complete:
            broken = self._broken_error(self._fault)
            broken.hides_output = not self._head_done  # an answer was made, and is not read
            self.abort(broken)
        elif self._complete:
            self._finish()
        elif self._news:
            self._news = False
            self._deadline = math.inf
            exchange.notify()

    def eof_received(self) -> None:
        if self._exchange is not None and self._until_close and self._fault is None:
            self._complete = True
            self._finish()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._close(None)

    # -- llhttp's side

    def on_message_begin(self) -> None:
        if self._complete:
            self._excess = True

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value) + 4
        if self._header_bytes > HEAD_LIMIT_BYTES or len(self._headers) > HEADER_LIMIT_COUNT:
            self._fault = "too many headers"
        elif not self._head_done:  # trailers are counted and dropped
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        parser, exchange = self._parser, self._exchange
        if parser is None or exchange is None or self._complete or self._fault is not None:
            return
        status = parser.get_status_code()
        if status < 200:
            self._headers.clear()
            if status == 101:
                self._fault = "switched protocols"
            return
        headers: dict[str, str] = {}
        for name, value in self._headers:
            key = name.decode("latin-1").lower()
            text = value.decode("latin-1")
            headers[key] = f"{headers[key]}, {text}" if key in headers else text
        self._head_done = True
        self._until_close = (
            "content-length" not in headers
            and "transfer-encoding" not in headers
            and status not in (204, 304)
        )
        exchange.status, exchange.headers = status, headers
        self._headers = []  # an answer may take minutes, and is read from `headers`
        self._news = True

    def on_body(self, data: bytes) -> None:
        self._silent_bytes = 0
        exchange = self._exchange
        if exchange is None or self._complete or self._transport is None:
            return
        self._news = True
        if exchange.push(data) > BUFFER_LIMIT_BYTES and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        if self._head_done and not self._complete:
            self._complete = True
            # A later call would return the parser's state of the next message.
            self._reusable = self._parser is not None and self._parser.should_keep_alive()

    # -- endings

    def _finish(self) -> None:
        """Complete the answer, and release or close the connection."""
        exchange, self._exchange = self._exchange, None
        transport = self._transport
        self._deadline = math.inf
        self.used = True
        reusable = (
            self._reusable
            and not self._excess
            and transport is not None
            and not transport.is_closing()
            and transport.get_write_buffer_size() == 0
        )
        if exchange is not None:
            exchange.end(None)
        if reusable:
            self.resume()
            self._on_free(self, True)
        else:
            self.abort()

    def _close(self, error: BackendError | None) -> None:
        if self._closed:
            return
        self._closed = True
        exchange, self._exchange = self._exchange, None
        if self._timer is not None:
            self._timer.cancel()
        self._parser = None  # the parser holds our methods: a cycle
        if exchange is not None:
            exchange.end(error or self._lost_error())
        self._on_free(self, False)

    def _lost_error(self) -> BackendError | StaleConnection:
        if not self._received and self.used and self.loop.time() - self._sent_s < STALE_S:
            return StaleConnection()
        return self._broken_error("the connection closed before the answer's end")

    def _broken_error(self, reason: str) -> BackendError:
        return UpstreamBroken(reason) if self._head_done else InvalidResponse(reason)
