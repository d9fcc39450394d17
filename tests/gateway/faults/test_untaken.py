"""Answers that are over for the gateway and still lie here, because their client takes nothing."""

import socket
import time

import pytest

CHAT = "/v1/chat/completions"
STALL_S = 2.0
LONG = b"x" * 12 * 1024 * 1024  # more than the kernel takes for a client that reads nothing


@pytest.fixture(scope="module")
def brief(faulty_with):
    """A host that waits for clients for two seconds."""
    waits = {"client_stall_s": STALL_S, "receive_s": 2.0, "keep_alive_s": 1.0}
    return faulty_with(server={"timeouts": waits})


@pytest.fixture
def long_answers(brief, rule, answers):
    said = (
        b'{"choices":[{"index":0,"message":{"content":"' + LONG + b'"},"finish_reason":"stop"}],'
        b'"usage":{"prompt_tokens":7,"completion_tokens":4,"total_tokens":11}}'
    )
    brief.alpha.rule = rule(answer=answers.whole(said))
    yield brief
    brief.peace()


def idle_reader(stack, requests: int = 1) -> socket.socket:
    """Asks, and never reads."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", stack.port))
    data = b'{"model":"api","messages":[{"role":"user","content":"hello"}]}'
    head = f"POST {CHAT} HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {stack.token}\r\n"
    client.sendall((head.encode() + b"content-length: %d\r\n\r\n" % len(data) + data) * requests)
    return client


@pytest.mark.parametrize("requests", [1, 2])
def test_who_takes_none_of_a_whole_answer_is_let_go(long_answers, patiently, requests) -> None:
    """Also who asks once more meanwhile: the second answer waits for room, and for no sweeper."""
    stack, last = long_answers.stack, long_answers.last_row()
    client = idle_reader(stack, requests)
    began_s = time.monotonic()
    patiently(lambda: len(stack.rows("seq > :last", last=last)) == requests)
    patiently(lambda: stack.connections() == 0 and stack.app.hot.in_flight == 0)
    assert time.monotonic() - began_s < 3 * STALL_S + 6
    assert [row["status"] for row in long_answers.all_settled(last, requests)] == (
        ["finished"] * requests
    )
    client.close()


def test_who_takes_it_slowly_gets_all_of_it(long_answers) -> None:
    """For longer than a client may stall."""
    client = idle_reader(long_answers.stack)
    client.settimeout(20)
    began_s, size, last = time.monotonic(), 0, b""
    per_s = len(LONG) / (2 * STALL_S + 4)
    while not last.endswith(b"}}"):
        part = client.recv(65536)
        assert part, f"cut off after {size} bytes"
        size, last = size + len(part), (last + part)[-64:]
        time.sleep(max(0.0, began_s + size / per_s - time.monotonic()))
    assert size > len(LONG)
    assert time.monotonic() - began_s > 2 * STALL_S + 2
    client.close()
