"""Uvicorn's HTTP protocol with the bounds it lacks: a deadline and a size for request heads.

Without them a client that sends one byte a second, or a header without an end, holds a connection
or memory for ever. What is no HTTP is answered in the API's own error shape, then the connection
closes: where the next request would begin is not known. Applications also get a way to drop a
connection whose client does not read: closing it would wait for the client to take what was sent;
and they are told of a hang-up without a task that waits for it. A client that closes only its
sending half counts as gone: until something is written to it, it looks like one that closed all.
An upgrade is ignored, as a server may: the parser would skip the body of who asks for one. A
WebSocket is begun where the application serves one (`gateway.http.socket_protocol`).
An answer that is given before its request's body is here lets the rest run out, for a moment, also
where the connection ends with it: closing would reset it before the answer is read.
All deadlines of a connection share one timer that is moved only when it would ring too late.
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
PIPELINED = 8  # requests behind the one in work, up to which its client is listened to
TICK_S = 0.001  # of the loop's clock
REST_S = 5.0  # for the rest of a body that nobody wants, up to the next request's head
WRITE_BYTES = 16 * 1024  # that a client has not taken; who reads slowly holds no more of an answer
LINGER_S = 1.0  # closing over unread bytes would reset the connection before its answer is read
_FRAMING = (
    "This is not well-formed HTTP/1.1: check the request line, the headers, `content-length` and "
    "the sizes of the chunks."
)
_CONTROLS = bytes(range(0x20)) + b"\x7f"
_MOST = "Too many connections are open here; come back in a moment."
_HEAD = f"The request line and the headers are longer than {HEAD_LIMIT_BYTES} bytes together."


class BoundedProtocol(HttpToolsProtocol):
    """`head_s`: from the connection's or the request's first moment to its last header.

    `most`: connections at once; more are answered with 503, before files to open run out.
    `stall_s`: how long a client may take nothing of what was written, its answer whole or not.
    `sockets`: whether a path is served as a WebSocket.
    """

    # Beside uvicorn's own in one dictionary they would be too many to share their names with other
    # connections: 1.3 KB each.
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
        self._headed_s = 0.0  # when the latest head was complete
        self._fed_bytes = 0
        self._upgrading = False  # its head is fed again, without the upgrade
        self._awaiting_head = False
        self._due_s = math.inf
        self._overdue: Callable[[], None] = _do_nothing
        self._timer: asyncio.TimerHandle | None = None
        self._lost = False
        self._deaf = False  # what still arrives is no request
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
        # Uvicorn tells the newest request only, not the one in work before it.
        if self._working is not None and not self._working.response_complete:
            self._working.disconnected = True
            self._working.message_event.set()
            if self._on_gone is not None:
                self._on_gone()
        self._lost = True
        self._let_go()

    def _let_go(self) -> None:
        """Drop references that lead back here: a cycle keeps 10 KB until garbage collection."""
        nothing: Any = None
        self.scope = self.headers = self.cycle = nothing
        self._working = self._on_gone = None
        self._overdue, self._outgoing = _do_nothing, nothing
        self.pipeline.clear()

    def listen(self, on_gone: Callable[[], None]) -> Callable[[], None]:
        """Call `on_gone` when the client disconnects (see `Connection`). Return a way to stop."""
        if self._lost or (self._working is not None and self._working.disconnected):
            on_gone()
            return _do_nothing
        self._on_gone = on_gone
        self.flow.resume_reading()  # or nobody would see it
        return partial(self._forget, on_gone)

    def _forget(self, on_gone: Callable[[], None]) -> None:
        if self._on_gone is on_gone:  # the next request may listen by now
            self._on_gone = None

    def abort(self) -> None:
        self.transport.abort()

    def unsent(self) -> int:
        """Return the number of unsent bytes (see `Connection`)."""
        return 0 if self._lost else self.flow.unsent()

    def take_body(self) -> bytes | None:
        """Return the whole body if it has arrived (see `Connection`)."""
        cycle = self._working
        if cycle is None or cycle.more_body or cycle.disconnected or cycle.waiting_for_100_continue:
            return None
        self.flow.resume_reading()
        cycle.message_event.clear()
        body, cycle.body = cycle.body, bytearray()
        return bytes(body)

    def push(self, part: bytes) -> bool:
        """Send a part of a body (see `Connection`). Return whether more may be sent."""
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
        """Send a whole answer in one write (see `Connection`). Return whether it was sent."""
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
        # Two controls end each line. A line about the connection is uvicorn's to understand.
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
        """Behind an answer; while its request still arrives, the rest of that runs out first."""
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
        """Close the connection of a client that did not send its body in time."""
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
        """Returns what lies behind a head with an upgrade, once that head was fed without it."""
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self._upgrading:
                self._upgrading = False
                rest = memoryview(data)[upgrade.args[0] :]
                if self._sockets is not None and begin_socket(self, bytes(rest), self._sockets):
                    return b""
                # After `connection: close` the old one takes what follows for nothing.
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
                self.parser.feed_data(strip_upgrade(self.scope, self.url, self.headers))
                return rest
        return b""

    def hand_over(self) -> None:
        """Let go of the connection, which another protocol has from now on."""
        self._finish_head()
        self.flow.end()
        if self._timer is not None:
            self._timer.cancel()
        self.connections.discard(self)
        self._lost = self._deaf = True
        self._let_go()

    def _refuse(self, error: RequestError) -> None:
        """Answer and close; a request that came whole before is answered first, and is the last."""
        self._deaf = True
        self._finish_head()
        cycle = self.cycle
        if cycle is not None and not cycle.response_complete:
            if not cycle.more_body:
                cycle.keep_alive = False
                return
            begun = cycle.response_started or bool(self.pipeline)
            cycle.disconnected = True  # half a request is nobody's work
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
        if self._head_bytes + self._fed_bytes > HEAD_LIMIT_BYTES:  # with what may be its body
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
            self.flow.resume_reading()  # or nobody would see the client hang up

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
        # As uvicorn does, except that its keep-alive deadline is one of ours.
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        if self._working is not None and self._working.more_body:
            self._run_out()
        elif not self._awaiting_head:  # half of the next head is here: its deadline holds
            self._expire(self.timeout_keep_alive, self.timeout_keep_alive_handler)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self.flow.watch()

    def _unset_keepalive_if_required(self) -> None:
        """Uvicorn calls this when bytes come."""
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
        """From here on this deadline holds, in place of any other."""
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
    """Return what uvicorn takes for a protocol class; `more` as `BoundedProtocol` names it."""
    return partial(BoundedProtocol, head_s=head_s, new_id=new_id, **more)


def _do_nothing() -> None:
    return
