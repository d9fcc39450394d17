"""The client's side of one request: what was sent, whether it is still there, who ended it.

`start` happens once; after it an error can only travel as an event in the stream. A sweeper (in
`gateway.api`) looks at `sending_since` and `opened_s` to end stalled and overlong requests.
"""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

Header = tuple[bytes, bytes]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Push = Callable[[bytes], bool]  # `BoundedProtocol.push`

JSON: Header = (b"content-type", b"application/json")


class Reply:
    """One answer. `task` is the request's task: cancelling it ends the request everywhere."""

    __slots__ = ("_clock", "_push", "_send", "ended_by", "finished", "opened_s", "request_id",
                 "sending_since", "started", "task")  # fmt: skip

    def __init__(
        self,
        send: Send,
        *,
        request_id: str,
        clock: Callable[[], float],
        task: asyncio.Task[Any],
        push: Push | None = None,
    ) -> None:
        self._send = send
        self._push = push
        self._clock = clock
        self.task = task
        self.request_id = request_id
        self.opened_s = clock()
        self.sending_since: float | None = None
        self.started = False
        self.finished = False
        self.ended_by: str | None = None  # "client_gone", "client_stall", "total", "drain"

    def end(self, why: str) -> None:
        """End the request from outside its task; the first reason stands, a full answer too."""
        if self.ended_by is None and not self.finished:
            self.ended_by = why
            self.task.cancel()

    async def start(self, status: int, headers: Sequence[Header]) -> None:
        self.started = True
        await self._send(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [(b"x-request-id", self.request_id.encode()), *headers],
            }
        )

    def push(self, part: bytes) -> bytes:
        """Send a part of a begun answer where nothing must be waited for; what is left for `body`.

        A hundredth of a core is saved by every thousand parts a second that need no task.
        """
        return b"" if self.started and self._push is not None and self._push(part) else part

    async def body(self, data: bytes, *, more: bool) -> None:
        """Send and wait while the client's buffer is full: memory stays bounded."""
        self.sending_since = self._clock()
        self.finished = not more  # the server reports a disconnect after a complete answer
        await self._send({"type": "http.response.body", "body": data, "more_body": more})
        self.sending_since = None

    async def whole(self, status: int, headers: Sequence[Header], data: bytes) -> None:
        await self.start(status, [*headers, (b"content-length", str(len(data)).encode())])
        await self.body(data, more=False)
