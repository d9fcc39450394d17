"""A request whose body never comes, on a path that FastAPI serves: told in shape, and in time."""

import json
import signal
import socket
import time

import pytest

ERROR = {"message", "type", "param", "code"}


def half(stack, path: str = "/v1/batches", kind: str = "application/json") -> socket.socket:
    """One byte of a hundred."""
    connection = socket.create_connection(("127.0.0.1", stack.port), timeout=10)
    head = (
        f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {stack.token}\r\n"
        f"content-type: {kind}\r\ncontent-length: 100\r\n\r\n"
    )
    connection.sendall(head.encode() + b"{")
    return connection


def read(connection: socket.socket) -> tuple[int, bytes, dict]:
    """(status, head, error) of one answer."""
    with connection:
        text = b""
        while not text.endswith(b"}}"):
            part = connection.recv(65536)
            assert part, text
            text += part
    head, _, body = text.partition(b"\r\n\r\n")
    error = json.loads(body)["error"]
    assert set(error) == ERROR
    return int(head.split()[1]), head.lower(), error


def test_a_body_that_never_comes_is_not_waited_for(run_stack) -> None:
    with run_stack(server={"timeouts": {"receive_s": 0.5}}) as stack:
        began_s = time.monotonic()
        status, _, error = read(half(stack))
        assert (status, error["code"]) == (408, "request_timeout")
        assert time.monotonic() - began_s > 0.4


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/v1/batches", "application/json"), ("/v1/files", "multipart/form-data; boundary=b")],
)
def test_who_is_cut_by_a_restart_is_told_so(run_stack, patiently, path, kind) -> None:
    with run_stack(server={"timeouts": {"drain_s": 1}}) as stack:
        connection = half(stack, path, kind)
        server, _ = stack._servers[-1]
        patiently(lambda: server.server_state.tasks)

        async def signalled() -> None:
            server.handle_exit(signal.SIGTERM, None)

        stack.call(signalled())
        status, head, error = read(connection)
        assert (status, error["code"]) == (503, "unavailable")
        assert b"content-type: application/json" in head
        assert b"x-request-id: " in head
