"""Uvicorn's WebSocket protocol with additional limits, and the upgrade to it.

A connection starts as HTTP (`gateway.http.protocol`) with its limits. Only paths served as
WebSockets are upgraded; other upgrades are ignored. Limited are a message's size (that of a body),
its number of frames, and unread answers. Compression is off, because the size of an unpacked
message would be known too late. At shutdown the application is notified and can finish; uvicorn's
own protocol would cut it off.
"""

import logging
from collections.abc import Callable
from typing import Any, Final, Protocol

import httptools
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import CloseCode, Frame

from gateway.http.outgoing import unsent_bytes

DRAIN: Final = "breakeven.drain"  # message to the application: finish open work, then close
SOCKET: Final = "breakeven.socket"
PARTS_LIMIT: Final = 4096  # frames of one message: empty ones do not count in its size
UNREAD_LIMIT_BYTES: Final = 1024 * 1024  # of pongs, which are sent without flow control
LINGER_S: Final = 1.0
CLOSE_S: Final = 10.0  # for the client to close

# Uvicorn logs each connection with its query, and the library each frame and header.
quiet = logging.getLogger("breakeven.socket")
quiet.setLevel(logging.WARNING)


class SocketLine(Protocol):
    """Connection of a WebSocket with features beyond ASGI; implemented by `SocketProtocol`."""

    def abort(self) -> None:
        """Drop the connection."""

    def unsent(self) -> int:
        """Return the bytes that were sent but not yet received by the client."""


class UpgradedConnection(Protocol):
    """Connection whose head asks for a WebSocket; implemented by `BoundedProtocol`."""

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
        """Release the connection to another protocol."""


class SocketProtocol(WebSocketsSansIOProtocol):
    """One WebSocket connection, available to the application as a `SocketLine` in the scope."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.logger = self.conn.logger = quiet
        self.conn.debug = False
        self.close_timeout = CLOSE_S
        self._deaf = False  # further data is discarded

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
        """Close with a reason, or drop a client that sends invalid frames during the handshake.

        Further data is read for a moment: closing at once would reset the connection before the
        client has read the reason.
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
        message: Any = {"type": DRAIN}  # not an ASGI message
        self.queue.put_nowait(message)

    async def send(self, message: Any) -> None:
        await super().send(message)
        if message["type"] == "websocket.close":  # a client that does not read would keep it open
            self.loop.call_later(CLOSE_S, self.transport.abort)

    def abort(self) -> None:
        self.transport.abort()

    def unsent(self) -> int:
        """Return the bytes not yet received by the client (see `SocketLine`)."""
        return unsent_bytes(self.transport)


def begin_socket(http: UpgradedConnection, rest: bytes, serves: Callable[[str], bool]) -> bool:
    """Upgrade to a WebSocket if the head asks for it and its path is served; return whether.

    `rest` is the data after the head. A head with a body or behind an open request is not upgraded,
    because the start of the frames would be ambiguous.
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
    http.hand_over()  # releases its head and state
    socket = SocketProtocol(
        config=http.config, server_state=http.server_state, app_state=http.app_state
    )
    socket.connection_made(transport)
    transport.set_protocol(socket)
    socket.data_received(b"".join(head))
    if not socket.handshake_initiated:  # the library's header limits are lower
        transport.abort()
    return True


def _path_of(url: bytes) -> str:
    try:
        return (httptools.parse_url(url).path or b"").decode("latin-1")
    except httptools.HttpParserInvalidURLError:
        return ""
