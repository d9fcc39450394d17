"""Reader of JSON request bodies for stored objects, limited in size and time."""

import asyncio
from typing import Any, Final

import msgspec
from fastapi import Request
from starlette.requests import ClientDisconnect

from gateway.errors import RequestError
from gateway.http.body import UNREADABLE, decode_object, refuse_unreadable

JSON_TYPE: Final = "application/json"


class BodyLimits(msgspec.Struct, frozen=True):
    """Limits of a request body. `receive_s` is the maximum time until it has arrived."""

    size_bytes: int
    receive_s: float


async def read_json_object(request: Request, limits: BodyLimits) -> dict[str, Any]:
    """Return the request's body as a JSON object. An empty body is an empty object.

    Raises `RequestError` when the body is too large, too late, or not a JSON object.
    """
    text = b""
    try:
        async with asyncio.timeout(limits.receive_s):
            async for part in request.stream():
                text += part
                if len(text) > limits.size_bytes:
                    message = f"The body is larger than {limits.size_bytes} bytes."
                    raise RequestError("too_large", message)
    except TimeoutError as error:
        raise RequestError("slow_client", "The request body did not arrive in time.") from error
    except ClientDisconnect as error:
        raise RequestError(
            "bad_request", "The client disconnected before its body ended."
        ) from error
    if not text.strip():
        return {}
    if "json" not in request.headers.get("content-type", JSON_TYPE).partition(";")[0].lower():
        raise RequestError("media_type", f"Send the body as `{JSON_TYPE}`.")
    try:
        found: dict[str, Any] = decode_object(text, dict[str, Any])
    except UNREADABLE as error:
        refuse_unreadable(text, error)
    return found
