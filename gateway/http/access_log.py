"""Access log: one record per request, without query, headers or bodies.

It wraps the application, so that a gateway without an access log does no work for it.
"""

import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from gateway.http.connection import CONNECTION, Header, RequestConnection, connection_of

LOGGER = "breakeven.access"
LONGEST_PATH = 200  # characters
PROBES = frozenset(("/health", "/healthz", "/metrics", "/readyz"))  # logged only when they fail
NO_ANSWER = 499  # nginx's status for a client that left before the answer began
SWITCHED = 101  # to a WebSocket
_HEADS = frozenset((
    "http.response.start", "websocket.accept", "websocket.http.response.start"
))  # fmt: skip
_NAMED = {b"x-request-id": "request_id", b"x-breakeven-backend": "target"}

Message = dict[str, Any]
Application = Callable[..., Awaitable[None]]

log = logging.getLogger(LOGGER)


class AccessLog:
    """ASGI wrapper that logs each request at its end: method, path, status, time, bytes.

    A WebSocket is logged once at its end, with the status of its handshake.
    """

    def __init__(self, app: Application, now_s: Callable[[], float] = time.monotonic) -> None:
        self._app = app
        self._now_s = now_s
        log.setLevel(logging.INFO)  # enabling the access log implies this level

    async def __call__(self, scope: Message, receive: Any, send: Any) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        began_s, answer = self._now_s(), _Answer(send)
        connection = connection_of(scope)
        if connection is not None:  # also count answers that bypass `send`
            counted = {CONNECTION: _CountedSend(connection, answer)}
            scope = {**scope, "extensions": {**scope["extensions"], **counted}}
        try:
            await self._app(scope, receive, answer)
        finally:
            if not (scope["path"] in PROBES and answer.status == 200):
                self._log(scope, answer, began_s)

    def _log(self, scope: Message, answer: "_Answer", began_s: float) -> None:
        client = scope.get("client")
        fields = {
            "method": scope.get("method", "GET"),  # WebSocket scopes have no method
            "path": scope["path"][:LONGEST_PATH],
            "status": answer.status,
            "duration_ms": round((self._now_s() - began_s) * 1e3, 1),
            "bytes": answer.size,
            "client": client[0] if client else "",
            **answer.named,
        }
        log.info("request", extra={"fields": fields})


class _Answer:
    """Counter of the bytes sent, with the status and the logged headers."""

    __slots__ = ("_send", "named", "size", "status")

    def __init__(self, send: Any) -> None:
        self._send = send
        self.status, self.size = NO_ANSWER, 0
        self.named: dict[str, str] = {}

    async def __call__(self, message: Message) -> None:
        if message["type"] in _HEADS:
            self.record_head(message.get("status", SWITCHED), message.get("headers", ()))
        else:
            self.size += len(message.get("body") or message.get("text") or b"")
        await self._send(message)

    def record_head(self, status: int, headers: Iterable[Header]) -> None:
        """Record the status and the headers that are logged."""
        self.status = status
        for name, value in headers:
            if name in _NAMED:
                self.named[_NAMED[name]] = value.decode("latin-1")


class _CountedSend:
    """Connection that counts the bytes sent over it."""

    def __init__(self, connection: RequestConnection, answer: _Answer) -> None:
        self._connection, self._counts = connection, answer
        self.abort, self.take_body = connection.abort, connection.take_body
        self.listen, self.unsent = connection.listen, connection.unsent

    def push(self, part: bytes) -> bool:
        if not self._connection.push(part):
            return False
        self._counts.size += len(part)
        return True

    def answer(self, status: int, headers: Sequence[Header], data: bytes) -> bool:
        if not self._connection.answer(status, headers, data):
            return False
        self._counts.record_head(status, headers)
        self._counts.size += len(data)
        return True
