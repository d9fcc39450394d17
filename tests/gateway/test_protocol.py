"""Request heads that do not come, do not end, or come too slowly; clients that take nothing."""

import asyncio
import socket
import time

import pytest

from gateway.protocol import HEAD_LIMIT_BYTES, abort_of, bounded


@pytest.fixture(scope="module")
def brief(tmp_path_factory, running):
    limits = {"timeouts": {"receive_s": 0.5, "drain_s": 1}}
    with running(tmp_path_factory.mktemp("host"), server=limits) as stack:
        yield stack


def connect(stack) -> socket.socket:
    return socket.create_connection(("127.0.0.1", stack.port), timeout=20)


def closed(connection: socket.socket) -> bool:
    """Whether the other side is gone; waits for it."""
    try:
        return connection.recv(4096) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("sent", [b"", b"P", b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\n"])
def test_a_head_that_does_not_come_is_not_waited_for(brief, sent: bytes) -> None:
    with connect(brief) as slow:
        slow.sendall(sent)
        assert closed(slow)


def test_a_byte_now_and_then_does_not_prolong_it(brief) -> None:
    with connect(brief) as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\n")
        try:
            for _ in range(100):
                slow.sendall(b"x")
                time.sleep(0.05)
        except OSError:
            return
        assert closed(slow)


def test_a_head_without_an_end_is_cut_at_its_limit(brief) -> None:
    with connect(brief) as endless:
        try:
            endless.sendall(b"GET /healthz HTTP/1.1\r\nx: " + b"y" * (4 * HEAD_LIMIT_BYTES))
        except OSError:
            return
        assert closed(endless)


def test_idle_between_requests_is_not_a_slow_head(brief) -> None:
    request = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
    with connect(brief) as kept:
        for pause_s in (0.0, 1.0):
            time.sleep(pause_s)
            kept.sendall(request)
            read = b""
            while b'{"status":"ok"}' not in read:
                read += kept.recv(4096)


def test_the_second_request_of_a_connection_has_its_deadline_too(brief) -> None:
    with connect(brief) as kept:
        kept.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET /heal")
        read = b""
        while b'{"status":"ok"}' not in read:
            read += kept.recv(4096)
        assert closed(kept)


def test_a_websocket_is_not_spoken(brief) -> None:
    with connect(brief) as upgrade:
        upgrade.sendall(
            b"GET /v1/models HTTP/1.1\r\nhost: x\r\n"
            b"connection: upgrade\r\nupgrade: websocket\r\n\r\n"
        )
        assert upgrade.recv(4096).startswith(b"HTTP/1.1 401")


def test_other_servers_offer_no_abort() -> None:
    abort_of({"type": "http"})()
    abort_of({"type": "http", "extensions": None})()
    called: list[int] = []
    abort_of({"extensions": {"breakeven.abort": lambda: called.append(1)}})()
    assert called == [1]


def test_what_uvicorn_gets_makes_protocols() -> None:
    assert bounded(2.0).keywords == {"head_s": 2.0}
    assert issubclass(bounded(2.0).func, asyncio.Protocol)
