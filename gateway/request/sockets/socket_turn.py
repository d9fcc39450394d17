"""One turn of a WebSocket as a request of the Responses path.

The request takes the same way as every HTTP request, and its answer is sent as messages. A message
is the data of one stream event. A refusal is an `error` event with the HTTP status; other headers
come with the first event, since a socket has none.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from backends.sse import EventSplitter, data_spans, join_data
from gateway.errors import RequestError
from gateway.errors import body as error_body
from gateway.http.body import Members, decode_member, decode_members, encode, encode_raw
from gateway.http.connection import CONNECTION, Header
from gateway.http.socket_protocol import SocketLine
from gateway.request.dialects.fields import unsupported
from gateway.request.request_endings import error_headers

RESPONSES_PATH: Final = "/v1/responses"
CREATE: Final = "response.create"
# Handshake headers that belong to the handshake, or describe a body.
_LEFT_OUT: Final = frozenset(
    (b"connection", b"upgrade", b"expect", b"idempotency-key", b"origin", b"transfer-encoding",
     b"content-type", b"content-length", b"content-encoding", b"accept-encoding")
)  # fmt: skip
_LEFT_OUT_BEGIN: Final = b"sec-websocket-"
_TOLD_BEGIN: Final = ("x-", "retry-after")  # headers that an event repeats
_ERROR: Final = "error"
_FAILED: Final = "response.failed"

SendText = Callable[[str], Any]


class TurnRequest(NamedTuple):
    """The request of a client's message; `body` is its body as over HTTP."""

    body: bytes
    previous: str | None
    warms_up: bool


def read_turn(text: str | bytes) -> TurnRequest:
    """Return the request of a message. Raises `RequestError` if a socket does not accept it."""
    members = decode_members(text.encode() if isinstance(text, str) else text)
    kind = decode_member(members, "type", str)
    if kind != CREATE:
        told = f"`type` must be `{CREATE}`: no other message is read here."
        raise RequestError("bad_request", told, param="type")
    for name, why in (
        ("background", "a socket's answer is made for its client. Ask over HTTP."),
        ("conversation", "a socket goes on by `previous_response_id`. Ask over HTTP."),
    ):
        if name in members and bytes(members[name]) not in (b"null", b"false"):
            raise unsupported(name, why)
    if decode_member(members, "stream", bool, True) is False:
        raise unsupported("stream", "a WebSocket always sends every event. Leave it out.")
    warms_up = decode_member(members, "generate", bool, True) is False
    rest: Members = {
        name: value for name, value in members.items() if name not in ("type", "generate")
    }
    rest["stream"] = encode_raw(True)
    previous = decode_member(members, "previous_response_id", str)
    return TurnRequest(encode(rest), previous, warms_up)


class SocketTurn:
    """The connection of a socket's request; implements `RequestConnection`.

    `failed`: its answer was an error. `gone`: the client disconnected.
    """

    def __init__(self, line: SocketLine | None, body: bytes, send_text: SendText) -> None:
        self._line = line
        self._body: bytes | None = body
        self._send_text = send_text
        self._on_gone: Callable[[], None] | None = None
        self._splitter = EventSplitter()
        self._status = 0
        self._headers: dict[str, str] = {}
        self._told_headers = False
        self._refusal = bytearray()
        self.failed = self.gone = False

    def scope(self, handshake: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
        """Return the ASGI scope of the request, as if it had been sent over HTTP."""
        kept = [
            (name, value)
            for name, value in handshake["headers"]
            if name not in _LEFT_OUT and not name.startswith(_LEFT_OUT_BEGIN)
        ]
        return {
            **handshake, "type": "http", "method": "POST", "path": RESPONSES_PATH,
            "raw_path": RESPONSES_PATH.encode(), "query_string": b"",
            "headers": [*kept, (b"content-type", b"application/json")],
            "extensions": {CONNECTION: self}, **more,
        }  # fmt: skip

    # -- the connection of a request -----------------------------------------------------------

    def abort(self) -> None:
        if self._line is not None:
            self._line.abort()

    def take_body(self) -> bytes | None:
        body, self._body = self._body, None
        return body

    def listen(self, on_gone: Callable[[], None]) -> Callable[[], None]:
        """Call `on_gone` when the client disconnects (see `RequestConnection`)."""
        if self.gone:
            on_gone()
        else:
            self._on_gone = on_gone
        return self._forget

    def _forget(self) -> None:
        self._on_gone = None

    def push(self, part: bytes) -> bool:
        del part
        return False  # every part must be read

    def unsent(self) -> int:
        return 0 if self._line is None else self._line.unsent()

    def answer(self, status: int, headers: Sequence[Header], data: bytes) -> bool:
        del status, headers, data
        return False

    # -- the answer ----------------------------------------------------------------------------

    def hang_up(self) -> None:
        """End the request as if its client had disconnected."""
        self.gone = True
        if self._on_gone is not None:
            self._on_gone()

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send a message of the request's answer as events."""
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = _told_headers(message["headers"])
            return
        data, more = message.get("body", b""), message.get("more_body", False)
        if self._status >= 400:
            self._refusal += data
            if not more:
                await self.tell_error(self._status, bytes(self._refusal), self._headers)
            return
        for event in self._splitter.feed(data):
            spans = data_spans(event)
            if spans:
                await self._tell(join_data(event, spans).strip())

    async def _tell(self, payload: bytes) -> None:
        kind = msgspec.json.decode(payload, type=_EventType).type
        if kind == _ERROR:
            return  # `response.failed` follows, and one event ends a turn
        self.failed = self.failed or kind == _FAILED
        if not self._told_headers:
            self._told_headers = True
            payload = payload[:-1] + b',"headers":' + encode(self._headers) + b"}"
        await self._send(payload.decode())

    async def tell_error(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None
    ) -> None:
        """Send an error's body as the event that ends the turn."""
        self.failed = True
        await self._send(error_event(status, body, headers))

    async def _send(self, text: str) -> None:
        if not self.gone:
            await self._send_text(text)


class _EventType(msgspec.Struct):
    type: str = ""


def error_event(status: int, body: bytes, headers: Mapping[str, str] | None = None) -> str:
    """Return an error body as an `error` event."""
    try:
        error = msgspec.json.decode(body)["error"]
    except (msgspec.MsgspecError, KeyError, TypeError):
        error = {"message": "The request failed.", "type": "server_error", "param": None}
    error = {**error, "code": error.get("code") or error.get("type") or "error"}
    document = {"type": _ERROR, "status": status, "error": error, "headers": headers or {}}
    return encode(document).decode()


def refusal_event(error: RequestError) -> str:
    """Return the error event of a message that never became a request."""
    headers = _told_headers(error_headers(error))
    return error_event(error.row.status, error_body(error), headers)


def _told_headers(headers: Sequence[Header]) -> dict[str, str]:
    named = ((name.decode("latin-1"), value.decode("latin-1")) for name, value in headers)
    return {name: value for name, value in named if name.startswith(_TOLD_BEGIN)}
