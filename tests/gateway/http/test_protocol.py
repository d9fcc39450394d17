"""Request heads that do not come, do not end, or come too slowly; clients that take nothing."""

import asyncio
import gc
import json
import math
import socket
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from gateway.config.schema_server import TimeoutsSection
from gateway.errors import TABLE
from gateway.http.protocol import (
    HEAD_LIMIT_BYTES,
    BoundedProtocol,
    bounded_protocol,
)


@pytest.fixture(scope="module")
def brief(tmp_path_factory, running):
    limits = {"timeouts": {"receive_s": 0.5, "keep_alive_s": 2.0, "drain_s": 1}}
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


def test_an_answer_does_not_take_the_deadline_off_the_head_behind_it(brief) -> None:
    with connect(brief) as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET /healthz HTTP/1.1\r\n")
        assert slow.recv(4096).startswith(b"HTTP/1.1 200")
        slow.sendall(b"x")
        assert closed(slow)


def test_a_connection_is_kept_between_requests_but_not_for_ever(brief) -> None:
    with connect(brief) as idle:
        for _ in range(3):
            idle.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
            read = b""
            while b'{"status":"ok"}' not in read:
                read += idle.recv(4096)
            time.sleep(0.7)  # longer than a head may take
        assert closed(idle)


def answer_of(connection: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """All that comes until the other side closes: one answer, and nothing behind it."""
    read = b""
    while part := connection.recv(65536):
        read += part
    head, _, text = read.partition(b"\r\n\r\n")
    line, *lines = head.decode().split("\r\n")
    headers = dict(each_line.split(": ", 1) for each_line in lines)
    assert len(text) == int(headers["content-length"])
    return int(line.split()[1]), headers, text


def refused_as(connection: socket.socket, kind: str) -> None:
    status, headers, text = answer_of(connection)
    assert (status, headers["content-type"]) == (TABLE[kind].status, "application/json")
    assert headers["x-request-id"].startswith("req_")
    assert headers["connection"] == "close"
    error = json.loads(text)["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert (error["type"], error["code"]) == TABLE[kind][1:3]


HEAD = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer %s\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        b"what is this\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",  # TLS
        b"GET /healthz HTTP/1.1\r\nhost x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nho st: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: x\0y\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: x\r\nhost: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: x\r\na: b\r\nHOST: y\r\n\r\n",
        b"GET /healthz HTTP/1.0\r\nhost: x\r\nhost: y\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nx-host: x\r\nforwarded: host=x\r\n\r\n",
        b"GET http://x/healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: x, y\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: x/y\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: x?y\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: x#y\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: y@x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: \xe4\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n",
        HEAD + b"content-length: many\r\n\r\n{}",
        HEAD + b"content-length: -1\r\n\r\n{}",
        HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
        HEAD + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n{}",
        HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
        HEAD + b"transfer-encoding: chunked\r\n\r\n2\r\n{}xx\r\n0\r\n\r\n",
    ],
)
def test_what_is_no_http_is_told_as_openai_would(brief, sent: bytes) -> None:
    with connect(brief) as wrong:
        wrong.sendall(sent % brief.token.encode() if sent.startswith(HEAD) else sent)
        refused_as(wrong, "bad_framing")


@pytest.mark.parametrize("sent", [b"post /healthz HTTP/1.1\r\nhost: x\r\n\r\n", b"\x16\x03\x01"])
def test_what_begins_with_no_method_is_told_so(brief, sent: bytes) -> None:
    """In small letters, or TLS: an address with https by mistake."""
    with connect(brief) as wrong:
        wrong.sendall(sent)
        _, _, text = answer_of(wrong)
    assert "not a method of HTTP" in json.loads(text)["error"]["message"]


def test_what_the_server_allows_is_asked_without_a_path(brief) -> None:
    with connect(brief) as client:
        client.sendall(b"OPTIONS * HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        head, _, rest = b"".join(iter(lambda: client.recv(65536), b"")).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 204 ")
    assert b"\r\nallow: DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT\r\n" in head
    assert rest == b""


def test_whoever_takes_it_for_a_proxy_is_told(brief) -> None:
    with connect(brief) as wrong:
        wrong.sendall(b"CONNECT api.example:443 HTTP/1.1\r\nhost: api.example:443\r\n\r\n")
        _, _, text = answer_of(wrong)
    assert "no proxy" in json.loads(text)["error"]["message"]


def test_clients_and_balancers_close_before_the_gateway() -> None:
    """What they send into a connection that it closes in that moment is lost."""
    assert TimeoutsSection().keep_alive_s > 60


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /healthz HTTP/1.0\r\n\r\n",
        b"GET /healthz HTTP/1.0\r\nhost: x\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost:\r\n\r\n",  # of an address without a host
        b"GET /healthz HTTP/1.1\r\nHost:  gate_way.example:8080 \r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: [::1]:8080\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: %67!$&'()*+,;=-._~\r\n\r\n",
        b"GET http://x/healthz HTTP/1.1\r\nhost: x\r\n\r\n",
    ],
)
def test_a_host_is_one_address_and_none_before_http_1_1(brief, sent: bytes) -> None:
    with connect(brief) as plain:
        plain.sendall(sent)
        assert plain.recv(4096).startswith(b"HTTP/1.1 200")


def test_a_request_without_a_host_ends_its_connection_behind_a_good_one(brief) -> None:
    with connect(brief) as kept:
        kept.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        read = b""
        while b'{"status":"ok"}' not in read:
            read += kept.recv(4096)
        kept.sendall(b"GET /healthz HTTP/1.1\r\n\r\nGET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        refused_as(kept, "bad_framing")


def test_a_broken_body_leaves_no_work_behind(run_stack, patiently) -> None:
    """Its head was good, so the request is already in work when a chunk breaks."""
    with run_stack() as stack:
        with connect(stack) as wrong:
            chunked = HEAD % stack.token.encode() + b"transfer-encoding: chunked\r\n\r\n"
            wrong.sendall(chunked + b'9\r\n{"model":\r\n')
            patiently(lambda: stack.app.hot.in_flight == 1)
            wrong.sendall(b"zz\r\n")
            refused_as(wrong, "bad_framing")
        patiently(lambda: stack.app.hot.in_flight == 0)
        assert stack.rows() == []


def test_a_body_longer_than_announced_gets_one_answer_and_a_close(brief) -> None:
    """What is too much is no request; the one before it came whole and is answered."""
    body = b'{"model":"own","messages":[{"role":"user","content":"hi"}],"max_tokens":3}'
    for announced, status in ((len(body), 200), (len(body) - 20, 400)):
        with connect(brief) as wrong:
            length = b"content-length: %d\r\n\r\n" % announced
            wrong.sendall(HEAD % brief.token.encode() + length + body + b" and more")
            answered, headers, text = answer_of(wrong)
            assert (answered, headers["content-type"]) == (status, "application/json")
            assert headers["x-request-id"].startswith("req_")
            assert ("error" in json.loads(text)) == (status == 400)


def test_a_stream_is_not_broken_into_by_what_follows_its_request(brief) -> None:
    body = {"model": "own", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 50}
    with brief.raw({**body, "stream": True}) as streaming:
        read = streaming.recv(4096)
        streaming.sendall(b"what is this\r\n\r\n")
        while part := streaming.recv(65536):
            read += part
    assert read.count(b"HTTP/1.1") == 1
    assert read.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")


def test_a_second_request_that_breaks_behind_one_in_work_ends_both(brief, patiently) -> None:
    body = b'{"model":"late","messages":[{"role":"user","content":"hi"}]}'
    first = HEAD % brief.token.encode() + b"content-length: %d\r\n\r\n" % len(body) + body
    second = HEAD % brief.token.encode() + b"transfer-encoding: chunked\r\n\r\nzz\r\n"
    with connect(brief) as wrong:
        wrong.sendall(first + second)
        assert closed(wrong)
    patiently(lambda: brief.app.hot.in_flight == 0)


@pytest.mark.parametrize("sent", [b"GET /healthz HTTP/1.1\r\nx: ", b"GET /"])
def test_a_head_without_an_end_is_refused_at_its_limit(brief, sent: bytes) -> None:
    with connect(brief) as endless:
        endless.sendall(sent + b"y" * (HEAD_LIMIT_BYTES + 8192))
        refused_as(endless, "head_too_large")


def test_whoever_goes_on_sending_is_not_listened_to_for_long(brief) -> None:
    with connect(brief) as endless:
        try:
            while True:
                endless.sendall(b"GET /healthz HTTP/1.1\r\nx: " + b"y" * HEAD_LIMIT_BYTES)
        except OSError:
            pass  # dropped, so that this test ends


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


@pytest.mark.parametrize("size", [1, 40, 10**6])
@pytest.mark.parametrize("asked", [b"Upgrade, HTTP2-Settings", b"close, upgrade"])
@pytest.mark.parametrize("chunked", [False, True])
def test_an_upgrade_is_ignored_and_its_body_read(
    brief, size: int, asked: bytes, *, chunked: bool
) -> None:
    """As curl and Java's client ask by default; in pieces too, with another request behind it."""
    body = b'{"model":"api","max_tokens":2,"messages":[{"role":"user","content":"hi"}]}'
    framed = b"content-length: %d\r\n\r\n%s" % (len(body), body)
    if chunked:
        framed = b"transfer-encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    upgrade = b"connection: %s\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABk\r\n" % asked
    sent = HEAD % brief.token.encode() + upgrade + framed
    with connect(brief) as curl:
        for at in range(0, len(sent), size):
            curl.sendall(sent[at : at + size])
        read = curl.recv(4096)
        assert read.startswith(b"HTTP/1.1 200"), read
        while b'"usage"' not in read:
            read += curl.recv(4096)
        if b"close" in asked:
            assert closed(curl)
            return
        curl.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        assert curl.recv(4096).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("sent", [b"x: ", b"connection: upgrade\r\nupgrade: h2c\r\nx: "])
def test_a_whole_head_has_the_same_limit(brief, sent: bytes) -> None:
    start = b"GET /healthz HTTP/1.1\r\nhost: x\r\n" + sent
    with connect(brief) as long:
        long.sendall(start + b"y" * 70_000 + b"\r\n\r\n")
        refused_as(long, "head_too_large")
    with connect(brief) as fits:
        fits.sendall(start + b"y" * (HEAD_LIMIT_BYTES - 1024) + b"\r\n\r\n")
        assert fits.recv(4096).startswith(b"HTTP/1.1 200")


def test_many_upgrades_in_one_read_are_as_many_requests(brief) -> None:
    asked = b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n"
    count = 1200  # deeper than Python recurses
    with connect(brief) as many:
        many.sendall(asked * count)
        read = b""
        while read.count(b'{"status":"ok"}') < count:
            part = many.recv(65536)
            assert part, "dropped"
            read += part


def test_a_long_body_is_no_head(brief) -> None:
    body = b'{"model":"api","max_tokens":2,"messages":[{"role":"user","content":"%s"}]}'
    body %= b"y" * 2 * HEAD_LIMIT_BYTES
    with connect(brief) as long:
        long.sendall(HEAD % brief.token.encode() + b"content-length: %d\r\n\r\n" % len(body) + body)
        assert not long.recv(4096).startswith(b"HTTP/1.1 431")


def test_a_websocket_is_not_spoken(brief) -> None:
    with connect(brief) as upgrade:
        upgrade.sendall(
            b"GET /v1/models HTTP/1.1\r\nhost: x\r\n"
            b"connection: upgrade\r\nupgrade: websocket\r\n\r\n"
        )
        assert upgrade.recv(4096).startswith(b"HTTP/1.1 401")


def test_what_uvicorn_gets_makes_protocols() -> None:
    made = bounded_protocol(2.0, str, most=math.inf, stall_s=5.0)
    assert made.keywords == {
        "head_s": 2.0, "new_id": str, "most": math.inf, "stall_s": 5.0,
    }  # fmt: skip
    assert issubclass(made.func, asyncio.Protocol)


@pytest.fixture
def answering() -> Callable[..., Any]:
    """A protocol whose answer has begun, and what it wrote."""

    def made(**state: Any) -> tuple[BoundedProtocol, list[bytes]]:
        written: list[bytes] = []
        begun = {"disconnected": False, "response_complete": False, "chunked_encoding": True}
        begun["more_body"] = False
        protocol = object.__new__(BoundedProtocol)
        protocol._lost = state.pop("lost", False)
        paused = state.pop("write_paused", False)
        protocol.flow = SimpleNamespace(write_paused=paused, watch=lambda: None)
        protocol.transport = SimpleNamespace(write=written.append)
        protocol._working = SimpleNamespace(**(begun | state))
        return protocol, written

    return made


def test_a_part_is_framed_and_written_at_once(answering) -> None:
    protocol, written = answering()
    assert protocol.push(b"data: {}" + b"x" * 12)
    assert written == [b"14\r\ndata: {}xxxxxxxxxxxx\r\n"]


@pytest.mark.parametrize(
    ("state", "taken"),
    [
        ({"write_paused": True}, False),  # the client reads slowly: whoever sends must wait
        ({"chunked_encoding": None}, False),  # no head is out
        ({"chunked_encoding": False}, False),
        ({"response_complete": True}, False),
        ({"disconnected": True}, True),  # as after any hang-up: nobody is there to wait for
        ({"disconnected": True, "write_paused": True}, True),
        ({"lost": True}, True),
    ],
)
def test_nothing_is_written_where_it_must_wait_or_has_no_place(answering, state, taken) -> None:
    protocol, written = answering(**state)
    assert protocol.push(b"a") is taken
    assert written == []


def test_before_any_request_there_is_nothing_to_push_to(answering) -> None:
    protocol, written = answering()
    protocol._lost, protocol._working = False, None
    assert not protocol.push(b"a")
    assert written == []
    assert not protocol.answer(200, [(b"a", b"b")], b"{}")
    assert protocol.take_body() is None


WHOLE: dict[str, Any] = {
    "response_started": False,
    "scope": {"method": "POST"},
    "default_headers": [(b"date", b"today")],
    "keep_alive": True,
}


@pytest.fixture
def whole(answering) -> Callable[..., Any]:
    """A protocol whose request is to be answered in one piece."""

    def made(**state: Any) -> tuple[BoundedProtocol, list[bytes], list[str]]:
        done: list[str] = []
        protocol, written = answering(
            message_event=SimpleNamespace(set=lambda: done.append("told")),
            on_response=lambda: done.append("ended"),
            **(WHOLE | state),
        )
        protocol.transport.close = lambda: done.append("closed")
        return protocol, written, done

    return made


@pytest.mark.parametrize(
    ("keep_alive", "more", "done"),
    [
        (True, b"", ["told", "ended"]),
        (False, b"connection: close\r\n", ["told", "closed", "ended"]),
    ],
)
def test_an_answer_in_one_piece_is_one_write(whole, keep_alive, more, done) -> None:
    protocol, written, seen = whole(keep_alive=keep_alive)
    assert protocol.answer(404, [(b"x-a", b"b c")], b"{}")
    head = b"HTTP/1.1 404 Not Found\r\ndate: today\r\nx-a: b c\r\ncontent-length: 2\r\n"
    assert written == [head + more + b"\r\n{}"]
    assert seen == done
    assert protocol._working.response_complete
    assert protocol._working.response_started


@pytest.mark.parametrize(
    ("state", "headers", "taken"),
    [
        ({"write_paused": True}, [], False),
        ({"response_started": True}, [], False),
        ({"scope": {"method": "HEAD"}}, [], False),  # its body stays here
        ({}, [(b"connection", b"close")], False),
        ({}, [(b"x-a", b"b\r\nx-c: d")], False),  # uvicorn refuses it in its own words
        ({}, [(b"x-a", b"b\0")], False),
        ({"disconnected": True}, [], True),
        ({"lost": True}, [], True),
    ],
)
def test_what_is_not_plain_is_not_answered_in_one_piece(whole, state, headers, taken) -> None:
    protocol, written, seen = whole(**state)
    assert protocol.answer(200, headers, b"{}") is taken
    assert (written, seen) == ([], [])


@pytest.mark.parametrize(
    ("state", "taken"),
    [
        ({}, b"{}"),
        ({"more_body": True}, None),
        ({"disconnected": True}, None),
        ({"waiting_for_100_continue": True}, None),  # its client is told to go on
    ],
)
def test_a_body_is_taken_once_it_is_whole(answering, state, taken) -> None:
    done: list[str] = []
    here = {"body": bytearray(b"{}"), "more_body": False, "waiting_for_100_continue": False}
    event = SimpleNamespace(clear=lambda: done.append("clear"))
    protocol, _ = answering(message_event=event, **(here | state))
    protocol.flow.resume_reading = lambda: done.append("resume")
    assert protocol.take_body() == taken
    assert done == ([] if taken is None else ["resume", "clear"])


def test_answers_in_one_piece_keep_the_order_of_their_requests(brief) -> None:
    """Three in one packet, the second of HTTP/1.0: the third has nobody to answer to."""
    head = HEAD % brief.token.encode() + b"content-length: 2\r\n\r\n{}"
    with connect(brief) as many:
        many.sendall(head * 2 + head.replace(b"HTTP/1.1", b"HTTP/1.0") + head)
        read = b""
        while part := many.recv(65536):
            read += part
    heads = read.split(b"HTTP/1.1 ")[1:]
    assert [each_head[:3] for each_head in heads] == [b"400"] * 3
    assert [b"connection: close" in each_head for each_head in heads] == [False, False, True]
    assert all(b"\r\ndate: " in each_head for each_head in heads)


@pytest.mark.parametrize("stream", [True, False])
def test_a_connection_leaves_nothing_for_the_collector(brief, patiently, stream) -> None:
    """What only it would free is kept long: it runs seldom, so that no answer waits for it."""

    def left() -> int:
        return sum(isinstance(get_object_, BoundedProtocol) for get_object_ in gc.get_objects())

    body = {"model": "own", "max_tokens": 2, "stream": stream, "messages": []}
    body["messages"] = [{"role": "user", "content": "hi"}]
    patiently(lambda: brief.connections() == 0)
    gc.collect()
    gc.disable()
    try:
        before = left()
        for hang_up in (False, True, True):
            connection = brief.raw(body)
            if not hang_up:
                while b"[DONE]" not in (got := connection.recv(1 << 16)) and b"usage" not in got:
                    assert got
            connection.close()
        patiently(lambda: brief.connections() == 0 and brief.app.hot.in_flight == 0)
        patiently(lambda: left() == before)
    finally:
        gc.enable()
