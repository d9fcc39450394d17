"""One WebSocket of the Responses path: messages are queued and answered one by one.

Reading goes on during an answer, so that a disconnect is noticed at once. A closing frame gives the
reason for the end, after the current answer or, if the key was revoked, at once.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from gateway.clock import Clock
from gateway.errors import RequestError
from gateway.http.socket_protocol import CLOSE_S, DRAIN, SOCKET, SocketLine
from gateway.request.inference_api import Message, Receive, SendMessage
from gateway.request.sockets.socket_turn import SocketTurn, refusal_event

WAITING: Final = 8  # messages queued during an answer
NORMAL, GOING_AWAY, BROKEN_RULE, FAILED, RESTART = 1000, 1001, 1008, 1011, 1012

log = logging.getLogger("breakeven.socket")


@dataclass(frozen=True, slots=True)
class SocketEnd:
    """The reason for a socket's end; `error` is sent before the closing frame."""

    code: int
    reason: str
    error: RequestError | None = None


ServeTurn = Callable[["ResponsesSocket", str | bytes], Awaitable[None]]


class ResponsesSocket:
    """One connection; `turn` is the one being answered."""

    def __init__(
        self, scope: Message, send: SendMessage, token: str, clock: Clock, serve: ServeTurn
    ) -> None:
        """Create the socket; `serve` is called to answer each message."""
        self.scope = scope
        self.token = token
        self.turn: SocketTurn | None = None
        self.line: SocketLine | None = (scope.get("extensions") or {}).get(SOCKET)
        self._send = send
        self._clock = clock
        self._serve = serve
        self._opened_s = self._quiet_since_s = clock.now_s()
        self._waiting: deque[str | bytes] = deque()
        self._news = asyncio.Event()
        self._cut = asyncio.Event()
        self._answering: asyncio.Task[None] | None = None  # of the current message
        self._end: SocketEnd | None = None
        self._gone = False

    async def run(self, receive: Receive) -> None:
        """Read messages and answer them in another task, until either ends the socket."""
        closing = asyncio.create_task(self._answer_all())
        reading = asyncio.create_task(self._read_all(receive))
        try:
            await asyncio.wait({reading, closing}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:  # the server's drain time is over
            task = asyncio.current_task()
            assert task is not None
            task.uncancel()
            self.end(SocketEnd(RESTART, "the gateway is restarting"))
            if self._answering is not None:
                self._answering.cancel()
            await asyncio.wait({closing})
        if reading.done():
            self._gone = True
            self.cut(SocketEnd(NORMAL, "the client left"))
        reading.cancel()
        await asyncio.gather(reading, closing, return_exceptions=True)
        if self._answering is not None:  # some answers are read on without the client
            await asyncio.wait({self._answering})

    async def _read_all(self, receive: Receive) -> None:
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                return
            if message["type"] == DRAIN:
                self.end(SocketEnd(RESTART, "the gateway is restarting"))
            elif len(self._waiting) >= WAITING:
                told = f"More than {WAITING} messages wait here: await each answer."
                error = RequestError("overloaded", told, retry_after_s=1.0)
                self.cut(SocketEnd(BROKEN_RULE, "too many messages wait", error))
            else:
                text = message.get("text")
                self._waiting.append(message["bytes"] if text is None else text)
                self._news.set()

    async def _answer_all(self) -> None:
        cut = asyncio.create_task(self._cut.wait())
        try:
            while self._end is None:
                if self._waiting:
                    await self._answer(self._waiting.popleft(), cut)
                else:
                    self._news.clear()
                    await self._news.wait()
        finally:
            cut.cancel()
        await self._close(self._end)

    async def _answer(self, text: str | bytes, cut: asyncio.Task[Any]) -> None:
        """Answer one message in a task of its own, which can be cancelled."""
        task = asyncio.create_task(self._serve_safely(text))
        self._answering = task
        await asyncio.wait({task, cut}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            self._answering, self._quiet_since_s = None, self._clock.now_s()

    async def _serve_safely(self, text: str | bytes) -> None:
        try:
            await self._serve(self, text)
        except Exception:  # the outermost handler of a turn
            log.exception("a turn of a WebSocket failed")
            self.end(SocketEnd(FAILED, "the gateway failed"))

    async def _close(self, end: SocketEnd) -> None:
        try:
            async with asyncio.timeout(CLOSE_S):
                if end.error is not None:
                    await self.send_text(refusal_event(end.error))
                await self._deliver(
                    {"type": "websocket.close", "code": end.code, "reason": end.reason}
                )
        except TimeoutError:  # the client reads nothing
            if self.line is not None:
                self.line.abort()

    async def send_text(self, text: str) -> None:
        """Send one event, and wait while the client does not read."""
        await self._deliver({"type": "websocket.send", "text": text})

    async def _deliver(self, message: dict[str, Any]) -> None:
        if self._gone:
            return
        try:
            await self._send(message)
        except OSError:  # servers report a disconnect so
            self._gone = True

    def end(self, end: SocketEnd) -> None:
        """Close the socket after the current answer."""
        if self._end is None:
            self._end = end
            self._news.set()

    def cut(self, end: SocketEnd) -> None:
        """Close the socket now; the current answer ends as if its client had left."""
        self._end = end
        self._news.set()
        self._cut.set()
        if self.turn is not None:
            self.turn.hang_up()

    def end_late(self, now_s: float, *, idle_s: float, total_s: float) -> None:
        """Close the socket if it is too old, or idle for too long."""
        if now_s - self._opened_s > total_s:
            told = f"This WebSocket was open for {total_s / 60:g} minutes. Open another one."
            self.end(SocketEnd(NORMAL, "too old", RequestError("socket_limit", told)))
        elif self._answering is None and now_s - self._quiet_since_s > idle_s:
            self.end(SocketEnd(GOING_AWAY, "idle"))
