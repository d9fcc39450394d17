"""A connection that becomes a WebSocket: which do, and the bounds of what its client sends."""

import os
import socket
import struct
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.http import socket_protocol
from gateway.http.socket_protocol import PARTS_LIMIT, SocketProtocol, begin_socket

HANDSHAKE = (
    b"GET %s HTTP/1.1\r\nhost: x\r\nauthorization: Bearer %s\r\nconnection: Upgrade\r\n"
    b"upgrade: websocket\r\nsec-websocket-version: 13\r\n"
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n%s\r\n"
)
LIMIT = 64 * 1024
TEXT, PART, CLOSE, PING = 1, 0, 8, 9


@pytest.fixture(scope="module")
def small(tmp_path_factory, running):
    with running(tmp_path_factory.mktemp("host"), server={"body_limit_bytes": LIMIT}) as stack:
        yield stack


def frame(opcode: int, data: bytes, *, last: bool = True) -> bytes:
    """One frame as a client sends it, its mask all zeros."""
    head = bytes([opcode | (0x80 if last else 0)])
    if len(data) < 126:
        head += bytes([0x80 | len(data)])
    elif len(data) < 65536:
        head += bytes([0x80 | 126]) + struct.pack("!H", len(data))
    else:
        head += bytes([0x80 | 127]) + struct.pack("!Q", len(data))
    return head + bytes(4) + data


def opened(stack, more: bytes = b"", behind: bytes = b"", path: bytes = b"/v1/responses") -> Any:
    connection = socket.create_connection(("127.0.0.1", stack.port), timeout=20)
    connection.sendall(HANDSHAKE % (path, stack.token.encode(), more) + behind)
    return connection


def received(connection: socket.socket, until: Callable[[bytes], bool]) -> bytes:
    data = b""
    while not until(data):
        part = connection.recv(65536)
        if not part:
            break
        data += part
    return data


def code_of(data: bytes) -> int:
    """The code of the closing frame at the end."""
    at = data.rindex(bytes([0x80 | CLOSE]))
    return int(struct.unpack("!H", data[at + 2 : at + 4])[0])


def test_frames_right_behind_the_head_are_read(small) -> None:
    with opened(small, behind=frame(TEXT, b"{}")) as connection:
        data = received(connection, lambda data: b'"type":"error"' in data)
    assert data.startswith(b"HTTP/1.1 101 ")
    assert b"x-request-id: req_" in data.lower()
    assert b"permessage-deflate" not in data


@pytest.mark.parametrize(
    "sent",
    [
        frame(TEXT, b"x" * (LIMIT + 1)),
        frame(TEXT, b"x" * LIMIT, last=False) + frame(PART, b"x"),
        frame(TEXT, b"{", last=False) + frame(PART, b"", last=False) * (PARTS_LIMIT + 1),
    ],
)
def test_a_message_is_no_larger_than_a_body_and_has_few_parts(small, sent: bytes) -> None:
    with opened(small, b"sec-websocket-extensions: permessage-deflate\r\n") as connection:
        received(connection, lambda data: b"\r\n\r\n" in data)
        connection.sendall(sent)
        assert code_of(received(connection, lambda _: False)) == 1009


@pytest.mark.parametrize(
    ("more", "behind"),
    [(b"", frame(TEXT, b"x" * (LIMIT + 1))), (b"x-a: %s\r\n" % (b"y" * 20_000), b"")],
)
def test_what_breaks_before_the_handshake_is_over_is_dropped(small, more, behind, caplog) -> None:
    with opened(small, more, behind) as connection:
        try:
            data = received(connection, lambda _: False)
        except ConnectionResetError:
            data = b""
    assert b"101" not in data[:20]
    assert "Traceback" not in caplog.text


def test_a_message_of_many_parts_below_the_bound_is_read(small) -> None:
    parts = frame(TEXT, b"{", last=False) + frame(PART, b"", last=False) * 100
    with opened(small, behind=parts + frame(PART, b"}")) as connection:
        assert b"type" in received(connection, lambda data: b'"type":"error"' in data)


@pytest.mark.parametrize(
    ("path", "more", "status"),
    [
        (b"/v1/models", b"", b"200"),
        (b"/v1/responses", b"transfer-encoding: chunked\r\n", b"405"),
        (b"/v1/responses", b"content-length: 5\r\n", b"405"),
    ],
)
def test_what_is_no_socket_goes_on_as_http(small, path, more, status) -> None:
    body = b"0\r\n\r\n" if b"chunked" in more else b"01234" if more else b""
    with opened(small, more, body, path) as connection:
        data = received(connection, lambda data: b"\r\n\r\n" in data)
    assert data.startswith(b"HTTP/1.1 " + status)


def test_a_handshake_of_another_version_is_refused(small) -> None:
    with socket.create_connection(("127.0.0.1", small.port), timeout=20) as connection:
        sent = HANDSHAKE % (b"/v1/responses", small.token.encode(), b"")
        connection.sendall(sent.replace(b"version: 13", b"version: 12"))
        assert received(connection, lambda data: b"\r\n\r\n" in data).startswith(b"HTTP/1.1 400")


def test_not_behind_a_request_that_is_still_answered(small) -> None:
    asked = b'{"model":"steady","input":"hi","max_output_tokens":4000,"stream":true}'
    head = b"POST /v1/responses HTTP/1.1\r\nhost: x\r\nauthorization: Bearer %s\r\n"
    head += b"content-type: application/json\r\ncontent-length: %d\r\n\r\n"
    with socket.create_connection(("127.0.0.1", small.port), timeout=20) as connection:
        connection.sendall(head % (small.token.encode(), len(asked)) + asked)
        received(connection, lambda data: b"response.created" in data)
        connection.sendall(HANDSHAKE % (b"/v1/responses", small.token.encode(), b""))
        data = b""
        while len(data) < 2000:
            data += connection.recv(65536)
        assert b"HTTP/1.1 101" not in data


def test_no_line_of_a_log_has_a_handshake(small, caplog) -> None:
    caplog.set_level(0)
    path = b"/v1/responses?key=gw_secret_in_a_query"
    with opened(small, path=path, behind=frame(TEXT, b"{}")) as connection:
        received(connection, lambda data: b'"type":"error"' in data)
    assert "gw_secret" not in caplog.text
    assert small.token not in caplog.text


@pytest.fixture
def protocol() -> SocketProtocol:
    """A protocol by itself, whose client reads as much as `buffered` says."""
    made = object.__new__(SocketProtocol)
    made.aborted, made._deaf = [], False
    made.transport = SimpleNamespace(
        get_write_buffer_size=lambda: made.buffered, abort=lambda: made.aborted.append(1)
    )
    made.conn = SimpleNamespace(
        receive_data=lambda data: None, parser_exc=None, events_received=list
    )
    return made


@pytest.mark.parametrize(("over", "aborted"), [(0, []), (1, [1])])
def test_whoever_pings_and_never_reads_is_dropped(protocol, over: int, aborted: list[int]) -> None:
    protocol.buffered = socket_protocol.UNREAD_LIMIT_BYTES + over
    protocol.data_received(frame(PING, os.urandom(8)))
    assert protocol.aborted == aborted


def test_an_address_that_cannot_be_read_is_no_socket() -> None:
    http: Any = SimpleNamespace(
        headers=[(b"upgrade", b"WebSocket")], pipeline=(), cycle=None, url=b"http://[",
        scope={"method": "GET"},
    )  # fmt: skip
    seen: list[str] = []
    assert not begin_socket(http, b"", lambda path: bool(seen.append(path)))
    assert seen == [""]
