"""Uvicorn's HTTP protocol with the bounds it lacks: a deadline and a size for request heads.

Without them a client that sends one byte a second, or a header without an end, holds a connection
or memory for ever. What is no HTTP is answered in the API's own error shape, then the connection
closes: where the next request would begin is not known. Applications also get a way to drop a
connection whose client does not read: closing it would wait for the client to take what was sent.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from gateway.errors import RequestError
from gateway.errors import body as error_body

ABORT = "breakeven.abort"
HEAD_LIMIT_BYTES = 64 * 1024
PIPELINED = 8  # requests behind the one in work, up to which its client is listened to
LINGER_S = 1.0  # closing over unread bytes would reset the connection before its answer is read
_FRAMING = (
    "This is not well-formed HTTP/1.1: check the request line, the headers, `content-length` and "
    "the sizes of the chunks."
)
_HEAD = f"The request line and the headers are longer than {HEAD_LIMIT_BYTES} bytes together."


class BoundedProtocol(HttpToolsProtocol):
    """`head_s`: from the connection's or the request's first moment to its last header."""

    def __init__(
        self, *arguments: Any, head_s: float, new_id: Callable[[], str], **options: Any
    ) -> None:
        super().__init__(*arguments, **options)
        self._head_s = head_s
        self._new_id = new_id
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._deaf = False  # what still arrives is no request
        self._working: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn narrows it
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_done()
        super().connection_lost(exc)
        # Uvicorn tells the newest request only, not the one in work before it.
        if self._working is not None and not self._working.response_complete:
            self._working.disconnected = True
            self._working.message_event.set()

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        super().data_received(data)
        if self._head_timer is not None and not self._deaf:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_LIMIT_BYTES:
                self._refuse(RequestError("head_too_large", _HEAD))

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - its own words are not ours
        """Uvicorn calls this when its parser gives up."""
        self._refuse(RequestError("bad_framing", _FRAMING))

    def _refuse(self, error: RequestError) -> None:
        """Answer and close; a request that came whole before is answered first, and is the last."""
        self._deaf = True
        self._head_done()
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
        self._head_timer = self.loop.call_later(LINGER_S, self.transport.abort)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: cast("Any", self.transport.abort)}
        self._await_head()

    def on_headers_complete(self) -> None:
        self._head_done()
        super().on_headers_complete()
        if 0 < len(self.pipeline) <= PIPELINED:
            self.flow.resume_reading()  # or nobody would see the client hang up

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._working = cycle
        super()._start_asgi_task(cycle, app)

    def _await_head(self) -> None:
        self._head_done()
        self._head_timer = self.loop.call_later(self._head_s, self.transport.abort)

    def _head_done(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def bounded(head_s: float, new_id: Callable[[], str]) -> Any:
    """What uvicorn takes for a protocol class."""
    return partial(BoundedProtocol, head_s=head_s, new_id=new_id)


def abort_of(scope: Any) -> Callable[[], None]:
    """Drops the request's connection; does nothing under a server that does not offer it."""
    found: Callable[[], None] = (scope.get("extensions") or {}).get(ABORT, _nothing)
    return found


def _nothing() -> None:
    return
