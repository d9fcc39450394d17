"""Uvicorn's WebSocket protocol with the bounds it lacks, and how a connection comes to speak it.

It begins as HTTP (`gateway.http.protocol`), whose bounds hold for its head; only paths that are
served so are handed on, and any other upgrade is ignored as before. A message has the size of a
body at most and comes in few parts, what its client does not read is bounded, and nothing is
compressed: what a text of a MiB unpacks to would be known too late. When the server stops, the
application is told and ends its work; uvicorn's own protocol would cut it off.
"""

import logging
from collections.abc import Callable
from typing import Any, Final, Protocol

import httptools
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

from gateway.http.outgoing import unsent_bytes

DRAIN: Final = "breakeven.drain"  # a message to the application: end what is under way, and close
SOCKET: Final = "breakeven.socket"
PARTS_LIMIT: Final = 4096  # of one message: empty ones would cost no bytes that a size counts
UNREAD_LIMIT_BYTES: Final = 1024 * 1024  # of answers to pings, which nobody waits to send
LINGER_S: Final = 1.0
CLOSE_S: Final = 10.0  # for the client's own closing

# Uvicorn writes a line for each connection with its query, and the library every frame and header.
quiet = logging.getLogger("breakeven.socket")
quiet.setLevel(logging.WARNING)


class SocketLine(Protocol):
    """A WebSocket's connection with what it offers beside ASGI's messages."""

    def abort(self) -> None:
        """Drop the connection."""

    def unsent(self) -> int:
        """Bytes that were sent and that its client has not taken."""


class UpgradedConnection(Protocol):
    """`gateway.http.protocol.BoundedProtocol`, whose head asks for a WebSocket."""

    config: Any
    server_state: Any
    app_state: Any
    transport: Any
    url: bytes
    headers: Any
    scope: Any
    cycle: Any
    pipeline: Any

    def hand_over(self) -> None:
        """Let go of the connection, which another protocol has from now on."""


class SocketProtocol(WebSocketsSansIOProtocol):
    """One connection. `extensions` of its scope has it as a `SocketLine`."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.logger = self.conn.logger = quiet
        self.conn.debug = False
        self.close_timeout = CLOSE_S
        self._deaf = False  # what still arrives is no frame

    def handle_connect(self, event: Any) -> None:
        super().handle_connect(event)
        if self.response.status_code == 101:
            extensions: Any = self.scope["extensions"]
            extensions[SOCKET] = self

    def data_received(self, data: bytes) -> None:
        if self._deaf:
            return
        if self.transport.get_write_buffer_size() > UNREAD_LIMIT_BYTES:
            self.transport.abort()
            return
        super().data_received(data)

    def handle_cont(self, event: Frame) -> None:
        if len(self.frames) >= PARTS_LIMIT:
            self.conn.fail(CloseCode.MESSAGE_TOO_BIG, "too many parts")
            self.handle_parser_exception()
            return
        super().handle_cont(event)

    def handle_parser_exception(self) -> None:
        """Close with a reason, or drop who sends what is no frame before the handshake is over.

        What still arrives runs out for a moment: closing over it would reset the connection before
        its client has read why.
        """
        self._deaf = True
        closing = self.conn.close_sent
        if closing is None:
            self.transport.abort()
            return
        end: Any = {"type": "websocket.disconnect", "code": closing.code, "reason": closing.reason}
        self.queue.put_nowait(end)
        self.close_sent = True
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.transport.write_eof()
        self.close_timer = self.loop.call_later(LINGER_S, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.frames = []

    def shutdown(self) -> None:
        message: Any = {"type": DRAIN}  # ours, not ASGI's
        self.queue.put_nowait(message)

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.close":  # a client that reads nothing keeps it open
            self.loop.call_later(CLOSE_S, self.transport.abort)

    def abort(self) -> None:
        self.transport.abort()

    def unsent(self) -> int:
        """Return the number of unsent bytes (see `SocketLine`)."""
        return unsent_bytes(self.transport)


def begin_socket(http: UpgradedConnection, rest: bytes, serves: Callable[[str], bool]) -> bool:
    """Go on as a WebSocket, if that is what a head asks for and its path is served so.

    `rest`: what came behind the head. Not behind a request that is still in work, and not of a head
    that has a body: where the frames begin would not be sure.
    """
    names = dict(http.headers)
    busy = bool(http.pipeline) or (http.cycle is not None and not http.cycle.response_complete)
    asked = http.scope["method"] == "GET" and names.get(b"upgrade", b"").lower() == b"websocket"
    bodied = b"transfer-encoding" in names or names.get(b"content-length", b"0") != b"0"
    if busy or bodied or not asked or not serves(_path_of(http.url)):
        return False
    head = [b"GET ", http.url, b" HTTP/1.1\r\n"]
    for name, value in http.headers:
        head += [name, b": ", value, b"\r\n"]
    head += [b"\r\n", rest]
    transport = http.transport
    http.hand_over()  # its head and state are let go of
    socket = SocketProtocol(
        config=http.config, server_state=http.server_state, app_state=http.app_state
    )
    socket.connection_made(transport)
    transport.set_protocol(socket)
    socket.data_received(b"".join(head))
    if not socket.handshake_initiated:  # the library takes shorter lines, and fewer of them
        transport.abort()
    return True


def _path_of(url: bytes) -> str:
    try:
        return (httptools.parse_url(url).path or b"").decode("latin-1")
    except httptools.HttpParserInvalidURLError:
        return ""
