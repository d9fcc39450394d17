"""Answers that are still running at a stop end with an error of the usual form.

The server cancels what is not done when its time to drain is over; left alone, it would then send
an error of its own, as plain text.
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
    """Runs `serve(send)`; 503 where it is cancelled while `draining` and nothing was sent yet."""
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
