"""Uvicorn's HTTP protocol with the bounds it lacks: a deadline and a size for request heads.

Without them a client that sends one byte a second, or a header without an end, holds a connection
or memory for ever. Applications also get a way to drop a connection whose client does not read:
closing it would wait for the client to take what was sent.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

ABORT = "breakeven.abort"
HEAD_LIMIT_BYTES = 64 * 1024


class BoundedProtocol(HttpToolsProtocol):
    """`head_s`: from the connection's or the request's first moment to its last header."""

    def __init__(self, *arguments: Any, head_s: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._head_s = head_s
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn narrows it
        super().connection_made(transport)
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_done()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._head_timer is not None:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_LIMIT_BYTES:
                self.transport.abort()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: cast("Any", self.transport.abort)}
        self._await_head()

    def on_headers_complete(self) -> None:
        self._head_done()
        super().on_headers_complete()

    def _await_head(self) -> None:
        self._head_done()
        self._head_timer = self.loop.call_later(self._head_s, self.transport.abort)

    def _head_done(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


def bounded(head_s: float) -> Any:
    """What uvicorn takes for a protocol class."""
    return partial(BoundedProtocol, head_s=head_s)


def abort_of(scope: Any) -> Callable[[], None]:
    """Drops the request's connection; does nothing under a server that does not offer it."""
    found: Callable[[], None] = (scope.get("extensions") or {}).get(ABORT, _nothing)
    return found


def _nothing() -> None:
    return
