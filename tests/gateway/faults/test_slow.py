"""Clients that read or write slowly, or never: bounded memory, an end, and nobody else waits."""

import contextlib
import json
import socket
import threading
import time
from pathlib import Path

import httpx
import pytest

from backends import http_connection
from gateway.request import inference_api

MESSAGES = [{"role": "user", "content": "hello there"}]
MIB = 1024 * 1024
STALLED = 12
FEW = 4  # clients, whose buffers hold nothing like what is read for them without back pressure
CHAT = "/v1/chat/completions"


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def idle_reader(stack, body, requests: int = 1) -> socket.socket:
    """Asks, and never reads."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", stack.port))
    data = json.dumps(body).encode()
    head = f"POST {CHAT} HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {stack.token}\r\n"
    client.sendall((head.encode() + b"content-length: %d\r\n\r\n" % len(data) + data) * requests)
    return client


@pytest.fixture(scope="module")
def brief(faulty_with):
    """A host that waits for clients for one and a half seconds."""
    waits = dict.fromkeys(("client_stall_s", "receive_s", "keep_alive_s"), 1.5)
    return faulty_with(server={"timeouts": waits})


@pytest.fixture
def flood(brief, rule, answers):
    """The provider says more than anyone would read, as fast as it is taken."""
    word = answers.CHOICE % ("x" * 900)
    event = f"data: {{{word}}}\n\n".encode()
    brief.alpha.rule = rule(answer=answers.HEAD + b"connection: close\r\n\r\n", endless=event * 64)
    yield brief
    brief.peace()


def stalled(flood, count: int):
    since = len(flood.alpha.seen)
    body = {"model": "api", "messages": MESSAGES, "stream": True}
    clients = [idle_reader(flood.stack, body) for _ in range(count)]
    return clients, since


def test_who_does_not_read_costs_bounded_memory_and_nobody_elses_time(flood, patiently) -> None:
    """What lies in the kernel's buffers is not ours; our own process must not grow with it."""
    stack, before = flood.stack, resident_bytes()
    last = flood.last_row()
    clients, since = stalled(flood, STALLED)
    patiently(lambda: len(flood.alpha.seen) == since + STALLED)
    settles(lambda: sum(event.passed for event in flood.alpha.seen[since:]))
    assert resident_bytes() - before < 32 * MIB
    for number in range(20):
        assert stack.chat("own", max_tokens=2).status_code == 200, number
    patiently(lambda: all(event.gone_s for event in flood.alpha.seen[since:]))
    rows = flood.all_settled(last, STALLED + 20)
    assert [row["status"] for row in rows if row["model"] == "api"] == ["timeout"] * STALLED
    patiently(lambda: stack.connections() == 0)
    for client in clients:
        client.close()


def settles(measure) -> int:
    """What it comes to rest at; the pipes fill within a second."""
    value = -1
    while (found := measure()) != value:
        value = found
        time.sleep(0.3)
    return value


def test_without_back_pressure_everything_is_read(flood, patiently, monkeypatch) -> None:
    """The negative control: who does not wait for the client's buffer, reads on."""

    monkeypatch.setattr(http_connection, "BUFFER_LIMIT_BYTES", 1 << 40)
    held: list[bytes] = []

    async def greedy(_reply, data: bytes, *, more: bool) -> None:
        held.append(data)

    monkeypatch.setattr(inference_api.ClientResponse, "body", greedy)
    clients, since = stalled(flood, 1)

    def is_flooded() -> bool:
        """On a busy machine an answer may be given up before it is so long: then another begins."""
        gone = [event for event in flood.alpha.seen[since:] if event.gone_s]
        if len(clients) == len(gone) < FEW:
            clients.extend(stalled(flood, 1)[0])
        return sum(map(len, held)) > 64 * MIB

    patiently(is_flooded, 150)
    for client in clients:
        client.close()
    patiently(lambda: all(event.gone_s for event in flood.alpha.seen[since:]))


def test_a_slow_reader_gets_everything(brief, rule, answers, patiently) -> None:
    """A byte now and then is no stall."""
    body = b"".join(
        b'data: {"choices":[{"index":0,"delta":{"content":"%s"}}]}\n\n' % (b"x" * 900)
        for _ in range(300)
    )
    text = answers.stream(body + answers.events())
    brief.alpha.rule = rule(answer=text)
    client = idle_reader(brief.stack, {"model": "api", "messages": MESSAGES, "stream": True})
    read = b""
    while not read.endswith(b"0\r\n\r\n"):
        read += client.recv(4096)
        time.sleep(0.002)
    assert read.count(b"x" * 900) == 300
    assert b"[DONE]" in read
    client.close()
    patiently(lambda: brief.stack.app.hot.in_flight == 0)
    brief.peace()


LONG = b"x" * 12 * MIB  # more than the kernel takes for a client that reads nothing


@pytest.fixture
def long_answers(brief, rule, answers):
    said = (
        b'{"choices":[{"index":0,"message":{"content":"' + LONG + b'"},"finish_reason":"stop"}],'
        b'"usage":{"prompt_tokens":7,"completion_tokens":4,"total_tokens":11}}'
    )
    brief.alpha.rule = rule(answer=answers.whole(said))
    yield brief
    brief.peace()


@pytest.mark.parametrize("requests", [1, 2])
def test_who_takes_none_of_a_whole_answer_is_let_go(long_answers, patiently, requests) -> None:
    """Also who asks once more meanwhile: the second answer waits for room, and for no sweeper."""
    stack = long_answers.stack
    stack.booked()
    last = long_answers.last_row()
    clients = [idle_reader(stack, {"model": "api", "messages": MESSAGES}, requests)]
    patiently(lambda: len(stack.rows("seq > :last", last=last)) == requests)
    patiently(lambda: stack.connections() == 0 and stack.app.hot.in_flight == 0)
    rows = long_answers.all_settled(last, requests)
    assert [row["status"] for row in rows] == ["finished"] * requests
    clients[0].close()


def test_who_takes_it_slowly_gets_all_of_it(long_answers) -> None:
    """For longer than a client may stall."""
    client = idle_reader(long_answers.stack, {"model": "api", "messages": MESSAGES})
    began_s, size, last = time.monotonic(), 0, b""
    while not last.endswith(b"}}"):
        part = client.recv(65536)
        assert part, f"cut off after {size} bytes"
        size, last = size + len(part), (last + part)[-64:]
        time.sleep(max(0.0, began_s + size / len(LONG) * 5 - time.monotonic()))
    assert size > len(LONG)
    client.close()


TRICKLES = {
    "head": b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nx: " + b"y" * 500,
    "body": b"POST %s HTTP/1.1\r\nhost: g\r\nauthorization: Bearer %s\r\n"
    b"content-length: 999\r\n\r\n{",
}


@pytest.mark.parametrize("where", ["head", "body"])
def test_a_byte_at_a_time_ends_at_the_deadline_and_others_are_served(
    brief, patiently, where
) -> None:
    stack = brief.stack
    begin = TRICKLES[where]
    if where == "body":
        begin = begin % (CHAT.encode(), stack.token.encode())
    clients = [socket.create_connection(("127.0.0.1", stack.port)) for _ in range(100)]
    stop = threading.Event()

    def trickle() -> None:
        for client in clients:
            client.sendall(begin[:20] if where == "head" else begin)
        place = 20
        while not stop.wait(0.05):
            for client in clients:
                with contextlib.suppress(OSError):
                    client.sendall(begin[place : place + 1] if where == "head" else b" ")
            place += 1

    thread = threading.Thread(target=trickle)
    patiently(lambda: stack.connections() >= 100)
    thread.start()
    for number in range(20):
        assert stack.chat("own", max_tokens=2).status_code == 200, number
    patiently(lambda: stack.connections() == 0)
    stop.set()
    thread.join()
    for client in clients:
        client.close()
    assert stack.app.hot.in_flight == 0


def test_without_the_deadline_a_trickle_holds_its_connection(faulty) -> None:
    """The negative control: with thirty seconds to send, nothing ends within two."""
    stack = faulty.stack
    client = socket.create_connection(("127.0.0.1", stack.port), timeout=2)
    client.sendall(TRICKLES["head"])
    with pytest.raises(TimeoutError):
        client.recv(100)
    client.close()


def test_idle_connections_cost_little_and_go(brief, patiently) -> None:
    stack = brief.stack
    before = resident_bytes()
    clients = [socket.create_connection(("127.0.0.1", stack.port)) for _ in range(300)]
    for client in clients:
        client.sendall(b"GET /healthz HTTP/1.1\r\nhost: g\r\n\r\n")
    for client in clients:
        assert client.recv(4096).startswith(b"HTTP/1.1 200")
    assert (resident_bytes() - before) / len(clients) <= 40 * 1024
    assert stack.chat("own", max_tokens=2).status_code == 200
    patiently(lambda: stack.connections() == 0)
    for client in clients:
        client.close()


@pytest.mark.parametrize("most", [20, 16_384])
def test_more_connections_than_the_limit_get_a_clean_503(faulty_with, patiently, most) -> None:
    """With the usual limit, the control, so few are all let in."""
    stack = faulty_with(server={"max_connections": most}).stack
    patiently(lambda: stack.connections() == 0)
    inside = [socket.create_connection(("127.0.0.1", stack.port)) for _ in range(20)]
    patiently(lambda: stack.connections() == 20)
    answer = httpx.get(f"{stack.url}/healthz", trust_env=False)
    assert answer.status_code == (503 if most == 20 else 200)
    if most == 20:
        assert answer.json()["error"]["code"] == "overloaded"
        assert answer.headers["connection"] == "close"
    for client in inside:
        client.close()
    patiently(lambda: stack.connections() == 0)
    assert stack.chat("own", max_tokens=2).status_code == 200
