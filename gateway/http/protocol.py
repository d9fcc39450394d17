"""Uvicorn's HTTP protocol with additional limits: a deadline and a size for request heads.

Without them, one byte a second or an endless header holds a connection or memory for ever. Invalid
HTTP gets an error in the API's format and the connection closes. Applications can drop a connection
whose client does not read, and learn of a disconnect without a waiting task. A client that closes
its sending half counts as disconnected. Upgrades are ignored, except to WebSockets where the
application serves them (`gateway.http.socket_protocol`). If an answer precedes the end of its
request's body, the rest is read for a moment: closing at once would reset the connection before the
client reads the answer. All deadlines of a connection share one timer.
"""

import asyncio
import math
from collections.abc import Callable, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from gateway.errors import RequestError
from gateway.errors import body as error_body
from gateway.http.connection import CONNECTION, Header
from gateway.http.framing import HOSTLESS, METHOD, framing_fault, strip_upgrade
from gateway.http.outgoing import ConnectionTransport, LazyFlowControl, wrap_unchunked
from gateway.http.socket_protocol import begin_socket

HEAD_LIMIT_BYTES = 64 * 1024
PIPELINED = 8  # maximum pipelined requests before reading pauses
TICK_S = 0.001  # resolution of the loop's clock
REST_S = 5.0  # for the unread rest of a body, up to the next request's head
WRITE_BYTES = 16 * 1024  # maximum unsent data of a slow client
LINGER_S = 1.0  # closing with unread data would reset the connection before its answer is read
_FRAMING = (
    "This is not well-formed HTTP/1.1: check the request line, the headers, `content-length` and "
    "the sizes of the chunks."
)
_CONTROLS = bytes(range(0x20)) + b"\x7f"
_MOST = "Too many connections are open here; come back in a moment."
_HEAD = f"The request line and the headers are longer than {HEAD_LIMIT_BYTES} bytes together."


class BoundedProtocol(HttpToolsProtocol):
    """Server side of one HTTP connection.

    `head_s` limits the time from the start of the connection or request to its last header. `most`
    limits connections; more get 503, before open files run out. `stall_s` limits the time in which
    a client takes no data. `sockets` returns whether a path is served as a WebSocket.
    """

    # In one dictionary with uvicorn's attributes, they would exceed the limit of key sharing
    # between instances: 1.3 KB per connection.
    __slots__ = (
        "_awaiting_head",
        "_deaf",
        "_due_s",
        "_fed_bytes",
        "_head_bytes",
        "_head_s",
        "_headed_s",
        "_lost",
        "_most",
        "_new_id",
        "_on_gone",
        "_outgoing",
        "_overdue",
        "_sockets",
        "_stall_s",
        "_timer",
        "_upgrading",
        "_working",
    )
    flow: LazyFlowControl

    def __init__(
        self,
        *arguments: Any,
        head_s: float,
        new_id: Callable[[], str],
        most: float = math.inf,
        stall_s: float = math.inf,
        sockets: Callable[[str], bool] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(*arguments, **options)
        self._sockets = sockets
        self._head_s = head_s
        self._stall_s = stall_s
        self._most = most
        self._new_id = new_id
        self._head_bytes = 0
        self._headed_s = 0.0  # when the last head was complete
        self._fed_bytes = 0
        self._upgrading = False  # the head is parsed again, without its upgrade
        self._awaiting_head = False
        self._due_s = math.inf
        self._overdue: Callable[[], None] = _do_nothing
        self._timer: asyncio.TimerHandle | None = None
        self._lost = False
        self._deaf = False  # further data is discarded
        self._working: RequestResponseCycle | None = None
        self._on_gone: Callable[[], None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn narrows it
        super().connection_made(transport)
        transport.set_write_buffer_limits(WRITE_BYTES)
        self.flow = LazyFlowControl(transport, self._stall_s)
        self._outgoing: Any = ConnectionTransport(transport, self._close)
        self._await_head()
        if len(self.connections) > self._most:
            self._refuse(RequestError("overloaded", _MOST))

    def connection_lost(self, exc: Exception | None) -> None:
        self._finish_head()
        self.flow.end()
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)
        # Uvicorn notifies only the newest request, not the one in progress before it.
        if self._working is not None and not self._working.response_complete:
            self._working.disconnected = True
            self._working.message_event.set()
            if self._on_gone is not None:
                self._on_gone()
        self._lost = True
        self._let_go()

    def _let_go(self) -> None:
        """Drop references to this object: a cycle keeps 10 KB until garbage collection."""
        nothing: Any = None
        self.scope = self.headers = self.cycle = nothing
        self._working = self._on_gone = None
        self._overdue, self._outgoing = _do_nothing, nothing
        self.pipeline.clear()

    def listen(self, on_gone: Callable[[], None]) -> Callable[[], None]:
        """Call `on_gone` when the client disconnects. Return a function that stops it."""
        if self._lost or (self._working is not None and self._working.disconnected):
            on_gone()
            return _do_nothing
        self._on_gone = on_gone
        self.flow.resume_reading()  # needed to see a disconnect
        return partial(self._forget, on_gone)

    def _forget(self, on_gone: Callable[[], None]) -> None:
        if self._on_gone is on_gone:  # the next request may already listen
            self._on_gone = None

    def abort(self) -> None:
        self.transport.abort()

    def unsent(self) -> int:
        """Return the bytes not yet received by the client (see `RequestConnection`)."""
        return 0 if self._lost else self.flow.unsent()

    def take_body(self) -> bytes | None:
        """Return the whole body if it has arrived (see `RequestConnection`)."""
        cycle = self._working
        if cycle is None or cycle.more_body or cycle.disconnected or cycle.waiting_for_100_continue:
            return None
        self.flow.resume_reading()
        cycle.message_event.clear()
        body, cycle.body = cycle.body, bytearray()
        return bytes(body)

    def push(self, part: bytes) -> bool:
        """Send a part of a body; return False if it must wait (see `RequestConnection`)."""
        if self._lost:
            return True
        cycle = self._working
        if cycle is None or not cycle.chunked_encoding or cycle.response_complete:
            return False
        if not cycle.disconnected:
            if self.flow.write_paused:
                return False
            self.transport.write(b"%x\r\n%b\r\n" % (len(part), part))
        return True

    def answer(self, status: int, headers: Sequence[Header], data: bytes) -> bool:
        """Send a whole answer in one write; return whether it was (see `RequestConnection`)."""
        if self._lost:
            return True
        cycle = self._working
        if cycle is None or cycle.response_started or cycle.scope["method"] == "HEAD":
            return False
        if cycle.disconnected:
            return True
        if self.flow.write_paused:
            return False
        lines = [b"%b: %b\r\n" % header for header in (*cycle.default_headers, *headers)]
        head = b"".join(lines)
        # Each line ends with two control characters. `connection` headers are left to uvicorn.
        controls = len(head) - len(head.translate(None, _CONTROLS))
        if controls != 2 * len(lines) or b"connection: " in head:
            return False
        more = b"" if cycle.keep_alive else b"connection: close\r\n"
        length = b"content-length: %d\r\n" % len(data)
        self.transport.write(b"".join((STATUS_LINE[status], head, length, more, b"\r\n", data)))
        cycle.waiting_for_100_continue = False
        cycle.response_started = cycle.response_complete = True
        cycle.message_event.set()
        if not cycle.keep_alive:
            self._close()
        cycle.on_response()
        return True

    def _close(self) -> None:
        """Close after an answer; if the request is still arriving, read its rest first."""
        cycle = self._working
        if cycle is None or not cycle.more_body or self.transport.is_closing():
            self.transport.close()
            self.flow.watch()
            return
        self._deaf = True
        self.flow.resume_reading()
        self.transport.write_eof()
        self._run_out()

    def _run_out(self) -> None:
        """Close the connection if the rest of the body does not arrive in time."""
        slow = self.loop.time() - self._headed_s >= self._head_s
        self._expire(LINGER_S if slow else REST_S, self.transport.abort)

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        self._unset_keepalive_if_required()
        self._feed(data)
        if self._awaiting_head and not self._deaf:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_LIMIT_BYTES:
                self._refuse(RequestError("head_too_large", _HEAD))

    def _feed(self, data: bytes) -> None:
        self._fed_bytes = len(data)
        rest: bytes | memoryview = data
        try:
            while rest:
                rest = self._parse_data(rest)
        except httptools.HttpParserError as error:
            told = error.__context__
            if not isinstance(told, RequestError):
                strange = isinstance(error, httptools.HttpParserInvalidMethodError)
                told = RequestError("bad_framing", METHOD if strange else _FRAMING)
            self._refuse(told)

    def _parse_data(self, data: bytes | memoryview) -> bytes | memoryview:
        """Feed the parser; after a head with an upgrade, return the data behind it."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._upgrading:
                self._upgrading = False
                rest = memoryview(data)[upgrade.args[0] :]
                if self._sockets is not None and begin_socket(self, bytes(rest), self._sockets):
                    return b""
                # After `connection: close` the old parser ignores further data.
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
                self.parser.feed_data(strip_upgrade(self.scope, self.url, self.headers))
                return rest
        return b""

    def hand_over(self) -> None:
        """Release the connection to another protocol."""
        self._finish_head()
        self.flow.end()
        if self._timer is not None:
            self._timer.cancel()
        self.connections.discard(self)
        self._lost = self._deaf = True
        self._let_go()

    def _refuse(self, error: RequestError) -> None:
        """Send an error and close; a complete earlier request is answered first instead."""
        self._deaf = True
        self._finish_head()
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if not cycle.more_body:
                cycle.keep_alive = False
                return
            begun = cycle.response_started or bool(self.pipeline)
            cycle.disconnected = True  # an incomplete request is not processed
            cycle.message_event.set()
            if begun:
                self.transport.abort()
                return
        text = error_body(error)
        head = (
            f"HTTP/1.1 {error.row.status} {HTTPStatus(error.row.status).phrase}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(text)}\r\n"
            f"x-request-id: {self._new_id()}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + text)
        self.transport.write_eof()
        self._expire(LINGER_S, self.transport.abort)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        offered: Any = {CONNECTION: self}
        self.scope["extensions"] = offered
        self._await_head()

    def on_headers_complete(self) -> None:
        if self._head_bytes + self._fed_bytes > HEAD_LIMIT_BYTES:  # including what may be its body
            head = sum(len(name) + len(value) + 4 for name, value in self.headers)
            if len(self.url) + head > HEAD_LIMIT_BYTES:
                raise RequestError("head_too_large", _HEAD)
        method, version = self.parser.get_method(), self.parser.get_http_version()
        words = framing_fault(method, version, self.url, self.headers)
        if words is not None:
            raise RequestError("bad_framing", words)
        if self.parser.should_upgrade() and method != b"CONNECT":
            self._upgrading = True
            self.scope["method"], self.scope["http_version"] = method.decode(), version
            return
        self._finish_head()
        super().on_headers_complete()
        self.cycle.transport = self._outgoing
        if 0 < len(self.pipeline) <= PIPELINED:
            self.flow.resume_reading()  # needed to see a disconnect

    def on_message_complete(self) -> None:
        if not self._upgrading:
            super().on_message_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._working = cycle
        old = cycle.scope["http_version"] == HOSTLESS
        super()._start_asgi_task(cycle, wrap_unchunked(app, cycle) if old else app)

    def on_response_complete(self) -> None:
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            return
        # As in uvicorn, but with this class's keep-alive deadline.
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        if self._working is not None and self._working.more_body:
            self._run_out()
        elif not self._awaiting_head:  # part of the next head has arrived: its deadline applies
            self._expire(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self.flow.watch()

    def _unset_keepalive_if_required(self) -> None:
        """Cancel the keep-alive deadline; uvicorn calls this when data arrives."""
        if self._overdue == self.timeout_keep_alive_handler:
            self._due_s = math.inf

    def _await_head(self) -> None:
        self._head_bytes = 0
        self._awaiting_head = True
        self._expire(self._head_s, self.transport.abort)

    def _finish_head(self) -> None:
        self._headed_s = self.loop.time()
        self._head_bytes = 0
        self._awaiting_head = False
        self._due_s = math.inf

    def _expire(self, seconds: float, overdue: Callable[[], None]) -> None:
        """Set the deadline, replacing the previous one."""
        self._due_s, self._overdue = self.loop.time() + seconds, overdue
        timer = self._timer
        if timer is None or timer.when() > self._due_s:
            if timer is not None:
                timer.cancel()
            self._timer = self.loop.call_at(self._due_s, self._check_deadline)

    def _check_deadline(self) -> None:
        self._timer = None
        if self._due_s == math.inf:
            return
        if self.loop.time() + TICK_S < self._due_s:
            self._timer = self.loop.call_at(self._due_s, self._check_deadline)
        else:
            self._due_s = math.inf
            self._overdue()


def bounded_protocol(head_s: float, new_id: Callable[[], str], **more: Any) -> Any:
    """Return a protocol factory for uvicorn; `more` are options of `BoundedProtocol`."""
    return partial(BoundedProtocol, head_s=head_s, new_id=new_id, **more)


def _do_nothing() -> None:
    return
