"""Reading of request bodies with a minimum pace, so that slow clients hold no slot."""

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from fastapi import Request
from starlette.requests import ClientDisconnect

from gateway.errors import RequestError

JSON_TYPE: Final = "application/json"
GRACE_S: Final = 30.0  # time allowed in addition to that of the bytes at the minimum rate
RATE_BYTES: Final = 64 * 1024  # per second, minimum rate


class BodyPace:
    """Reader of one body; `patience_s` limits the wait for each piece."""

    def __init__(self, patience_s: float) -> None:
        self._patience_s = patience_s
        self._arrived = 0
        self._waited_s = 0.0

    async def read_piece(self, body: AsyncIterator[bytes]) -> bytes:
        """Return the next piece, empty at the end.

        Raises `TimeoutError` for a client that is silent or too slow overall. Only the time spent
        waiting for the client counts, not the time of the database.
        """
        left_s = GRACE_S + self._arrived / RATE_BYTES - self._waited_s
        began_s = asyncio.get_running_loop().time()
        async with asyncio.timeout(max(0.0, min(self._patience_s, left_s))):
            data = await anext(body, b"")
        self._waited_s += asyncio.get_running_loop().time() - began_s
        self._arrived += len(data)
        return data


async def read_json_body(request: Request, *, limit: int, patience_s: float) -> bytes:
    """Return the whole body, at most `limit` bytes. Raises `RequestError`."""
    if "json" not in request.headers.get("content-type", JSON_TYPE).partition(";")[0].lower():
        raise RequestError("media_type", f"Send the body as `{JSON_TYPE}`.")
    pace, stream, text = BodyPace(patience_s), request.stream(), bytearray()
    try:
        while data := await pace.read_piece(stream):
            text += data
            if len(text) > limit:
                raise RequestError("too_large", f"The body is larger than {limit:,} bytes.")
    except TimeoutError as error:
        raise RequestError("slow_client", "The request body did not arrive in time.") from error
    except ClientDisconnect as error:
        raise RequestError(
            "bad_request", "The client disconnected before its body ended."
        ) from error
    return bytes(text)
