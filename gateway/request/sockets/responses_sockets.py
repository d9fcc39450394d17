"""`/v1/responses` as a WebSocket: handshake, turns, and the reasons to end.

A handshake needs a key and, from a web page, a configured origin. Each turn is a request of its own
(`gateway.request.inference_api`): it checks the key again and has its own budget hold and rows. A
socket ends with its key, when idle or old, and when the gateway stops. The current turn is finished
first, except if the key ended. Messages sent in between wait, within a bound.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from gateway.auth import INFERENCE, KeyLookup, authenticate, require_token
from gateway.clock import Clock, next_tick
from gateway.config.schema_server import ServerSection
from gateway.errors import RequestError
from gateway.errors import body as error_body
from gateway.http.fields import read_fields
from gateway.logs import REQUEST
from gateway.request.client_paths import canonical_path
from gateway.request.client_response import JSON
from gateway.request.inference_api import STORAGE, InferenceApi, Message, Receive, SendMessage
from gateway.request.request_endings import CHALLENGE, error_headers
from gateway.request.sockets.responses_socket import BROKEN_RULE, ResponsesSocket, SocketEnd
from gateway.request.sockets.socket_memory import SocketMemory, SocketStorage
from gateway.request.sockets.socket_turn import (
    RESPONSES_PATH,
    SocketTurn,
    read_turn,
    refusal_event,
)

LOOK_S: Final = 0.5  # interval of checks of keys and times


def is_socket_path(path: str) -> bool:
    """Return whether a path is served as a WebSocket."""
    other = canonical_path(path.rstrip("/"))
    return (path.rstrip("/") if other is None else other.path) == RESPONSES_PATH


class ResponsesSockets:
    """All WebSockets of a worker."""

    def __init__(
        self, hot: Callable[[], InferenceApi], keys: KeyLookup, server: ServerSection, clock: Clock
    ) -> None:
        """Create the set of sockets; `hot` returns the API that serves the turns."""
        self._hot = hot
        self._keys = keys
        self._server = server
        self._clock = clock
        self._memory = SocketMemory(server.sockets.memory_bytes)
        self._open: set[ResponsesSocket] = set()

    @property
    def count(self) -> int:
        """Return the number of open sockets."""
        return len(self._open)

    async def __call__(self, scope: Message, receive: Receive, send: SendMessage) -> None:
        """Serve one connection, from its handshake to its end."""
        hot = self._hot()
        request_id = hot.new_id()
        REQUEST.set(request_id)
        await receive()  # the opening message
        try:
            token = await self._admit(scope)
        except RequestError as error:
            await _refuse(send, error, request_id)
            return
        headers = [(b"x-request-id", request_id.encode())]
        await send({"type": "websocket.accept", "headers": headers})
        socket = ResponsesSocket(scope, send, token, self._clock, self._serve_turn)
        self._open.add(socket)
        try:
            await socket.run(receive)
        finally:
            self._open.discard(socket)
            self._memory.forget(socket)

    async def _admit(self, scope: Message) -> str:
        if not is_socket_path(scope["path"]):
            raise RequestError(
                "no_route", f"`{scope['path']}` does not accept WebSockets. Use `/v1/responses`."
            )
        origin = next((value for name, value in scope["headers"] if name == b"origin"), None)
        allowed = self._server.cors_origins
        if origin is not None and "*" not in allowed and origin.decode("latin-1") not in allowed:
            told = "Web pages of this origin may not connect (`server.cors_origins`)."
            raise RequestError("forbidden", told)
        token = require_token(read_fields(scope["headers"]).token)
        now_us = self._clock.wall_us()
        await authenticate(self._keys, token, now_us=now_us, scope=INFERENCE)
        return token

    async def _serve_turn(self, socket: ResponsesSocket, text: str | bytes) -> None:
        """Answer one message."""
        hot = self._hot()
        try:
            asked = read_turn(text)
        except RequestError as error:
            await socket.send_text(refusal_event(error))
            return
        turn = SocketTurn(socket.line, asked.body, socket.send_text)
        socket.turn = turn
        storage = SocketStorage(
            self._memory, socket, hot.storage, self._server.body_limit_bytes,
            warms_up=asked.warms_up,
        )  # fmt: skip
        scope = turn.scope(socket.scope, {STORAGE: storage})
        await hot(scope, _receive_nothing, turn.send)
        socket.turn = None
        if turn.failed and self._memory.find(socket, asked.previous) is not None:
            self._memory.forget(socket)  # the next turn must send the whole conversation

    async def watch(self) -> None:
        """Run until cancelled: end sockets that are idle, old or without a valid key."""
        while True:
            await next_tick(LOOK_S)
            if self._open:
                await self._look()

    async def _look(self) -> None:
        now_s, now_us, limits = self._clock.now_s(), self._clock.wall_us(), self._server.sockets
        doubtful: dict[str, list[ResponsesSocket]] = {}
        for socket in tuple(self._open):
            socket.end_late(now_s, idle_s=limits.idle_s, total_s=limits.total_s)
            if self._keys.recall(socket.token, now_us) is None:
                doubtful.setdefault(socket.token, []).append(socket)
        if doubtful:
            await asyncio.gather(*(self._judge(*item) for item in doubtful.items()))

    async def _judge(self, token: str, sockets: list[ResponsesSocket]) -> None:
        try:
            await authenticate(self._keys, token, now_us=self._clock.wall_us(), scope=INFERENCE)
        except RequestError as error:
            if error.row.status < 500:  # while the ledger is unavailable, a valid key stays valid
                for socket in sockets:
                    socket.cut(SocketEnd(BROKEN_RULE, "the key ended", error))


async def _receive_nothing() -> Message:
    """Return a disconnect: a turn has its body, and its connection reports real disconnects."""
    return {"type": "http.disconnect"}


async def _refuse(send: SendMessage, error: RequestError, request_id: str) -> None:
    """Answer the handshake like a refused request."""
    with suppress(OSError):
        data = error_body(error)
        headers = [
            JSON, (b"x-request-id", request_id.encode()), *error_headers(error),
            (b"content-length", str(len(data)).encode()),
        ]  # fmt: skip
        if error.row.status == 401:
            headers.append(CHALLENGE)
        start = {"type": "websocket.http.response.start", "status": error.row.status}
        await send({**start, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": data})
