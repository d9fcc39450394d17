"""Ends of requests without an answer: refusals, and answers that are cut off."""

import asyncio
from collections.abc import MutableMapping
from math import ceil
from typing import Any, Final

from gateway.errors import RequestError, fault_header
from gateway.errors import body as error_body
from gateway.http.connection import Header, RequestConnection
from gateway.kinds.error_events import error_event
from gateway.request.client_response import CLIENT_GONE, JSON, ClientResponse

CHALLENGE: Final[Header] = (b"www-authenticate", b"Bearer")
_ENDINGS: Final = {
    "total": ("timeout", "The request took too long."),
    "drain": ("unavailable", "The gateway is restarting."),
}
_BODY_UNREAD: Final = 408  # the unread body follows on the connection


async def send_ending(
    reply: ClientResponse, connection: RequestConnection | None, patience_s: float
) -> None:
    """Send the reason to a client that still reads, and abort the connection of any other.

    `patience_s` is the time allowed to read data sent before, which may be a picture of many MiB.
    """
    if reply.ended_by == CLIENT_GONE or reply.finished:
        return
    kind, why = _ENDINGS.get(reply.ended_by or "", _ENDINGS["total"])
    error = RequestError(kind, why, retry_after_s=1.0)
    if not reply.started:
        await refuse(reply, error)
    elif reply.sending_since is None:
        try:
            async with asyncio.timeout(patience_s):
                await reply.tell_broken(error_event(why, error.row.type, error.row.code))
        except TimeoutError:
            if connection is not None:
                connection.abort()
    elif connection is not None:
        connection.abort()  # closing would wait for a client that reads nothing


def error_headers(error: RequestError) -> list[Header]:
    """Return headers with the fault, the failed target, and whether and when to retry."""
    headers: list[Header] = [fault_header(error.fault)]
    if error.retry_after_s is not None:
        headers.append((b"retry-after", str(max(1, ceil(error.retry_after_s))).encode()))
    if error.retry is not None:
        headers.append((b"x-should-retry", b"true" if error.retry else b"false"))
    if error.backend is not None:
        headers.append((b"x-breakeven-backend", error.backend.encode("latin-1", "replace")))
    return headers


async def refuse(
    reply: ClientResponse, error: RequestError, *, last: bool = False, methods: bytes = b"POST"
) -> None:
    """Send the OpenAI error body, unless the response has started.

    `last` closes the connection, for a request whose body was not read. `methods` are the methods
    that the path allows.
    """
    if reply.started:
        return
    headers: list[Header] = [JSON, *error_headers(error)]
    if error.row.status == 405:
        headers.append((b"allow", methods))
    if error.row.status == 401:
        headers.append(CHALLENGE)
    if last or error.row.status == _BODY_UNREAD:
        headers.append((b"connection", b"close"))
    await reply.send_whole(error.row.status, headers, error_body(error))


def waits_to_send(scope: MutableMapping[str, Any]) -> bool:
    """Return whether the client sends its body only on request (header "Expect").

    A refusal before that must end the connection.
    """
    return any(name == b"expect" for name, _ in scope["headers"])
