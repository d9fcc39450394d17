"""HTTP/1.1 as clients speak it, over raw sockets: what is kept open, closed and told."""

import json
import socket
import time
from typing import Self

import pytest

BODY = json.dumps(
    {"model": "own", "messages": [{"role": "user", "content": "x"}], "max_tokens": 2}
).encode()
WRONG = "gw_0000000000000000_" + "0" * 64
MIB = b"x" * 1024 * 1024


@pytest.fixture(scope="module")
def small(tmp_path_factory, running):
    server = {"body_limit_bytes": 4096, "timeouts": {"drain_s": 1}}
    with running(tmp_path_factory.mktemp("small"), server=server) as stack:
        yield stack


def head(stack, *lines: str, key: str = "", length: int = len(BODY), line: str = "") -> bytes:
    line = line or "POST /v1/chat/completions HTTP/1.1"
    found = [
        line,
        "host: x",
        "content-type: application/json",
        f"authorization: Bearer {key or stack.token}",
        f"content-length: {length}",
        *lines,
    ]
    return ("\r\n".join(found) + "\r\n\r\n").encode()


class Client:
    """One connection, read answer by answer."""

    def __init__(self, stack) -> None:
        self.socket = socket.create_connection(("127.0.0.1", stack.port), timeout=10)
        self.file = self.socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        status = int(self.file.readline().split()[1])
        headers = {}
        while line := self.file.readline().strip():
            name, _, value = line.decode().partition(": ")
            headers[name] = value
        return status, headers, self.file.read(int(headers.get("content-length", 0)))

    def closed(self) -> bool:
        try:
            return self.file.read(1) == b""
        except ConnectionResetError:
            return True


def test_a_connection_is_kept_over_errors(stack) -> None:
    with Client(stack) as client:
        for sent, status in (
            (head(stack, key=WRONG) + BODY, 401),
            (head(stack, length=1) + b"{", 400),
            (head(stack, line="PUT /v1/models HTTP/1.1") + BODY, 405),
            (head(stack, line="POST /nowhere HTTP/1.1") + BODY, 404),
            (head(stack, line="PUT /v1/chat/completions HTTP/1.1") + BODY, 405),
            (head(stack) + BODY, 200),
        ):
            client.send(sent)
            assert client.answer()[0] == status


def test_requests_sent_at_once_are_answered_in_their_order(stack) -> None:
    with Client(stack) as client:
        models = head(stack, line="GET /v1/models HTTP/1.1", length=0)
        bad = head(stack, key=WRONG) + BODY
        client.send(head(stack) + BODY + bad + models + head(stack) + BODY)
        assert [client.answer()[0] for _ in range(4)] == [200, 401, 200, 200]


def test_the_client_says_that_it_is_the_last(stack) -> None:
    with Client(stack) as client:
        client.send(head(stack, "connection: close") + BODY)
        status, headers, _ = client.answer()
        assert (status, headers["connection"]) == (200, "close")
        assert client.closed()


@pytest.mark.parametrize("kept", ["close", "keep-alive"])
def test_the_older_http_ends_with_its_answer(stack, kept: str) -> None:
    with Client(stack) as client:
        line = "POST /v1/chat/completions HTTP/1.0"
        client.send(head(stack, f"connection: {kept}", line=line) + BODY)
        status, headers, text = client.answer()
        assert (status, headers["connection"]) == (200, "close")
        assert json.loads(text)["choices"]
        assert client.closed()


def test_the_older_http_knows_no_chunks(stack) -> None:
    """What has no length ends with its connection: a client of that time reads all as the body."""
    body = json.dumps({**json.loads(BODY), "stream": True}).encode()
    with Client(stack) as client:
        line = "POST /v1/chat/completions HTTP/1.0"
        client.send(head(stack, length=len(body), line=line) + body)
        status, headers, _ = client.answer()
        assert (status, headers["connection"]) == (200, "close")
        assert "transfer-encoding" not in headers
        text = client.file.read()
    events = [event.removeprefix(b"data: ") for event in text.split(b"\n\n")]
    assert events[-2:] == [b"[DONE]", b""]
    assert all(json.loads(event)["choices"] for event in events[:-2])


def test_a_body_is_asked_for_once_its_key_is_known(stack) -> None:
    with Client(stack) as client:
        client.send(head(stack, "expect: 100-continue"))
        assert client.file.readline() == b"HTTP/1.1 100 Continue\r\n"
        assert client.file.readline() == b"\r\n"
        client.send(BODY)
        status, headers, _ = client.answer()
        assert (status, headers.get("connection")) == (200, None)


@pytest.mark.parametrize(
    ("line", "key", "status"),
    [
        ("", WRONG, 401),
        ("POST /v1/nowhere HTTP/1.1", "", 404),
        ("PUT /v1/models HTTP/1.1", "", 405),
    ],
)
def test_a_body_that_nobody_wants_is_not_asked_for(stack, line: str, key: str, status) -> None:
    """Its client may send it or not: what follows could not be told apart."""
    with Client(stack) as client:
        client.send(head(stack, "expect: 100-continue", line=line, key=key))
        found, headers, _ = client.answer()
        assert (found, headers["connection"]) == (status, "close")
        assert client.closed()


@pytest.mark.parametrize(("key", "status"), [("", 413), (WRONG, 401)])
def test_who_sends_too_much_reads_why_and_goes_on(small, key: str, status: int) -> None:
    """The rest is let run out: a closed connection would be reset before the answer is read."""
    with Client(small) as client:
        client.send(head(small, key=key, length=16 * len(MIB)))
        for _ in range(16):
            client.send(MIB)
            time.sleep(0.005)  # the answer is given long before
        found, headers, _ = client.answer()
        assert (found, headers.get("connection")) == (status, None)
        client.send(head(small) + BODY)
        assert client.answer()[0] == 200


@pytest.mark.parametrize(
    ("path", "key", "status"),
    [
        ("/v1/chat/completions", "", 413),
        ("/v1/messages", WRONG, 401),
        ("/v1/files", "", 415),
        ("/v1/nowhere", "", 404),
    ],
)
def test_who_sends_too_much_as_the_last_reads_why(small, path: str, key: str, status: int) -> None:
    """As Python's `urllib` does, which reads nothing before all is sent."""
    with Client(small) as client:
        line, last = f"POST {path} HTTP/1.1", "connection: close"
        client.send(head(small, last, key=key, length=16 * len(MIB), line=line))
        for _ in range(16):
            client.send(MIB)
            time.sleep(0.005)  # the answer is given long before
        found, headers, text = client.answer()
        assert (found, headers["connection"]) == (status, "close")
        assert json.loads(text)["error"]["message"]
        assert client.closed()


def test_the_rest_is_let_run_out_for_a_moment_only(small, monkeypatch) -> None:
    monkeypatch.setattr("gateway.http.protocol.REST_S", 0.3)
    with Client(small) as client:
        client.send(head(small, key=WRONG, length=10**12))
        assert client.answer()[0] == 401
        begun = time.monotonic()
        with pytest.raises(OSError):  # noqa: PT012  (which of them it reaches is the system's)
            while time.monotonic() - begun < 60:
                client.send(b"xx")
                time.sleep(0.02)
        assert time.monotonic() - begun > 0.2


def is_given_up(stack, length: int) -> bool:
    """Whether the gateway gives up the connection of a request whose body never comes."""
    with Client(stack) as client:
        client.send(head(stack, length=length))
        assert client.answer()[0] == 408
        begun = time.monotonic()
        try:
            while time.monotonic() - begun < 60:
                client.send(b"x")
                time.sleep(0.02)
        except OSError:
            return True
        return False


def test_who_was_too_slow_is_not_waited_for_twice(run_stack, monkeypatch) -> None:
    monkeypatch.setattr("gateway.http.protocol.REST_S", 120.0)
    with run_stack(server={"timeouts": {"receive_s": 0.5}}) as stack:
        assert is_given_up(stack, 10**6)


def test_an_early_answer_leaves_no_deadline_behind(small, monkeypatch) -> None:
    monkeypatch.setattr("gateway.http.protocol.REST_S", 0.3)
    with Client(small) as client:
        client.send(head(small, key=WRONG, length=2))
        assert client.answer()[0] == 401
        client.send(b"{}" + head(small))
        time.sleep(0.6)
        client.send(BODY)
        assert client.answer()[0] == 200
