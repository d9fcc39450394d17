"""Error response for requests that are still running when the gateway stops.

The server cancels what is running when its drain time is over. Without this module it would then
send an error of its own, as plain text.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from gateway.errors import RequestError, body
from gateway.request.client_response import JSON

Message = Any
Send = Callable[[Message], Awaitable[None]]


async def serve_with_shutdown_response(
    serve: Callable[[Send], Awaitable[None]], send: Send, draining: Callable[[], bool]
) -> None:
    """Run `serve(send)`; answer 503 if it is cancelled while draining and has sent nothing."""
    begun = False

    async def noted(message: Message) -> None:
        nonlocal begun
        begun = True
        await send(message)

    try:
        await serve(noted)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if begun or task is None or not draining():
            raise
        task.uncancel()
        error = RequestError("unavailable", "The gateway is restarting.")
        told = body(error)
        length = (b"content-length", str(len(told)).encode())
        headers = [JSON, length, (b"connection", b"close"), (b"retry-after", b"1")]
        start = {"type": "http.response.start", "status": error.row.status, "headers": headers}
        await send(start)
        await send({"type": "http.response.body", "body": told})
