"""CORS: web pages of the configured origins may call the API from a browser.

This wraps the application only if origins are configured. It answers preflight requests itself,
because they have no key. Request headers are not restricted: the API uses no cookies, so a page
without a key gets nothing. Paths without a key are excluded, because they would expose an internal
network to an external page.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from gateway.http.connection import CONNECTION, Header, RequestConnection, connection_of
from gateway.request.client_response import Send

App = Callable[[Any, Any, Any], Any]

_SHARED = re.compile(r"/+v[12]/").match  # including repeated slashes, which are removed later
METHODS = b"GET, HEAD, POST, DELETE"
CACHED = ("GET", "HEAD")  # methods whose responses may be cached
EXPOSED = (
    b"x-request-id, request-id, retry-after, x-should-retry, x-breakeven-fault, "
    b"x-breakeven-backend, x-breakeven-policy, x-breakeven-decision, x-breakeven-cost-usd, "
    b"x-breakeven-tokens, x-breakeven-ignored, x-breakeven-content, x-breakeven-cache, age, "
    b"x-breakeven-not-stored, idempotent-replayed, deprecation, sunset, link, "
    b"x-ratelimit-limit-requests, "
    b"x-ratelimit-remaining-requests, "
    b"x-ratelimit-reset-requests, x-ratelimit-limit-tokens, x-ratelimit-remaining-tokens, "
    b"x-ratelimit-reset-tokens"
)
MAX_AGE_S = 7200  # the maximum that browsers accept
ASKED_LIMIT = 4096
_NAMES = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:[ \t]*,[ \t]*[!#$%&'*+.^_`|~0-9A-Za-z-]+)*")


class CorsPolicy:
    """ASGI wrapper that adds CORS headers for `origins`.

    Origins are written as browsers send them (`https://app.example.com`); `*` allows all.
    """

    def __init__(self, app: App, origins: Sequence[str], new_id: Callable[[], str]) -> None:
        self._app = app
        self._all = "*" in origins
        self._origins = frozenset(origin.encode() for origin in origins)
        self._new_id = new_id

    async def __call__(self, scope: Any, receive: Any, send: Send) -> None:
        origin = None
        shared = scope["type"] == "http" and _SHARED(scope["path"]) is not None
        if shared:
            origin = _value(scope, b"origin")
        headers: list[Header] = [] if self._all else [(b"vary", b"origin")]
        if origin is None:  # not a browser; `vary` keeps caches from giving its answer to a page
            varies = shared and headers and scope["method"] in CACHED
            await self._app(scope, receive, _with(send, headers) if varies else send)
            return
        allowed = self._all or origin in self._origins
        if allowed:
            headers.append((b"access-control-allow-origin", b"*" if self._all else origin))
        wanted = _value(scope, b"access-control-request-method")
        if scope["method"] == "OPTIONS" and wanted is not None:
            headers += _preflight_headers(scope) if allowed else []
            await self._beforehand(send, headers)
        else:
            headers += [(b"access-control-expose-headers", EXPOSED)] if allowed else []
            await self._app(_answered_with(scope, headers), receive, _with(send, headers))

    async def _beforehand(self, send: Send, headers: Sequence[Header]) -> None:
        named = (b"x-request-id", self._new_id().encode())
        start = {"type": "http.response.start", "status": 204, "headers": [named, *headers]}
        await send(start)
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def _preflight_headers(scope: Any) -> list[Header]:
    """Return the allowed methods, and the headers that the page wants to send."""
    found: list[Header] = [
        (b"access-control-allow-methods", METHODS),
        (b"access-control-max-age", str(MAX_AGE_S).encode()),
        (b"vary", b"access-control-request-headers"),
    ]
    wanted = _value(scope, b"access-control-request-headers")
    if wanted and len(wanted) <= ASKED_LIMIT and _NAMES.fullmatch(wanted):
        found.append((b"access-control-allow-headers", wanted))
    return found


def _value(scope: Any, name: bytes) -> bytes | None:
    return next((value for given, value in scope["headers"] if given == name), None)


class _SharingHeaders:
    """Connection that adds headers to answers sent in one piece."""

    def __init__(self, connection: RequestConnection, headers: Sequence[Header]) -> None:
        self._headers = headers
        self.abort, self.take_body = connection.abort, connection.take_body
        self.listen, self.push = connection.listen, connection.push
        self.unsent = connection.unsent
        self._answer = connection.answer

    def answer(self, status: int, headers: Sequence[Header], data: bytes) -> bool:
        return self._answer(status, [*headers, *self._headers], data)


def _answered_with(scope: Any, headers: Sequence[Header]) -> Any:
    connection = connection_of(scope)
    if connection is None:
        return scope
    sharing = {CONNECTION: _SharingHeaders(connection, headers)}
    return {**scope, "extensions": {**scope["extensions"], **sharing}}


def _with(send: Send, headers: Sequence[Header]) -> Send:
    async def shared(message: Any) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", ()), *headers]}
        await send(message)

    return shared
