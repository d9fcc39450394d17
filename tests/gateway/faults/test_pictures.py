"""Pictures in a stream: several MiB in one event, over real sockets, to their clients and books."""

import json
import socket
import time

import httpx
import pytest

MIB = 1024 * 1024
STALL_S = 1.0
MESSAGES = [{"role": "user", "content": "draw"}]
USAGE = '"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1290,"total_tokens":1297}'


def drawn(size: int, finish: str | None = None) -> bytes:
    url = "data:image/png;base64," + "iVBO" * (size // 4)
    image = {"type": "image_url", "image_url": {"url": url}}
    delta = {"role": "assistant", "content": "", "images": [image]}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "a", "choices": [choice]}).encode() + b"\n\n"


@pytest.fixture
def sketching(answers):
    """A stream of one picture, in its middle or in its last event."""

    def make(size: int, *, last: bool) -> bytes:
        end = f"data: {{{answers.LAST}}}\n\n".encode()
        shown = drawn(size, "stop") if last else drawn(size) + end
        return shown + f"data: {{{USAGE}}}\n\n".encode() + answers.DONE

    return make


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("model", ["own", "api"])
def test_a_picture_reaches_its_client_and_its_tokens_the_books(
    faulty, rule, answers, sketching, model, last
) -> None:
    body, since = sketching(8 * MIB, last=last), faulty.last_row()
    asked = {"stream": True, "stream_options": {"include_usage": True}}
    answer = faulty.ask(model, rule(answer=answers.stream(body)), **asked)
    assert answer.status_code == 200
    assert answer.content == body
    (row,) = faulty.all_settled(since, 1)
    flag = None if model == "own" else "partly_priced"  # no price file has a kind for pictures
    assert (row["status"], row["output_tokens"], row["flag"]) == ("finished", 1290, flag)
    assert row["ttft_us"] is not None


def last_of(answer: httpx.Response) -> str:
    """What kind of event a stream ends with."""
    return json.loads(answer.content.rpartition(b"data: ")[2])["type"]


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses"])
def test_other_dialects_say_the_rest_of_such_an_answer(
    faulty, rule, answers, sketching, path
) -> None:
    """Neither has a form for a picture of the model's."""
    said = f"data: {{{answers.CHOICE % 'here it is'}}}\n\n".encode()
    body, since = said + sketching(8 * MIB, last=False), faulty.last_row()
    faulty.alpha.rule = rule(answer=answers.stream(body))
    faulty.forget()
    asked = {"model": "api", "stream": True}
    asked |= {"messages": MESSAGES, "max_tokens": 5000} if "messages" in path else {"input": "draw"}
    answer = faulty.stack.post(path, asked)
    assert answer.status_code == 200
    assert b"here it is" in answer.content
    assert last_of(answer) in ("message_stop", "response.completed")
    (row,) = faulty.all_settled(since, 1)
    assert (row["status"], row["output_tokens"]) == ("finished", 1290)


@pytest.fixture(scope="module")
def brief(faulty_with):
    """A host that does not wait for clients for long."""
    return faulty_with(server={"timeouts": {"client_stall_s": STALL_S}})


def reader(stack, path: str = "/v1/chat/completions") -> socket.socket:
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", stack.port))
    asked = {"model": "api", "messages": MESSAGES, "stream": True, "max_tokens": 5000}
    data = json.dumps(asked).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {stack.token}\r\n"
    client.sendall(head.encode() + b"content-length: %d\r\n\r\n" % len(data) + data)
    return client


def test_who_reads_a_picture_slowly_gets_all_of_it(brief, rule, answers, sketching) -> None:
    """It leaves in one piece, which takes longer than a client may stall."""
    word = f"data: {{{answers.CHOICE % ('x' * 900)}}}\n\n".encode()
    body = drawn(12 * MIB) + word * 100 + sketching(1000, last=False)
    brief.alpha.rule = rule(answer=answers.stream(body))
    client, read, begun = reader(brief.stack), bytearray(), time.monotonic()
    while not read.endswith(b"0\r\n\r\n"):
        piece = client.recv(256 * 1024)
        assert piece, "cut off"
        read += piece
        time.sleep(len(piece) / (5 * MIB))
    assert time.monotonic() - begun > 2 * STALL_S
    assert b"[DONE]" in read
    client.close()


def test_a_trickle_is_no_stall(brief, rule, answers, sketching) -> None:
    """The kernel holds some MiB: what lies in the gateway does not get less for a long time."""
    word = f"data: {{{answers.CHOICE % ('x' * 900)}}}\n\n".encode()
    body = drawn(12 * MIB) + word * 100 + sketching(1000, last=False)
    brief.alpha.rule = rule(answer=answers.stream(body))
    client, until = reader(brief.stack), time.monotonic() + 4 * STALL_S
    while time.monotonic() < until:
        assert client.recv(2048), "cut off"
        time.sleep(0.05)
    assert brief.stack.app.hot.in_flight == 1
    client.close()


def test_who_takes_none_of_a_picture_is_let_go(brief, rule, answers, sketching, patiently) -> None:
    since, word = brief.last_row(), f"data: {{{answers.CHOICE % ('x' * 900)}}}\n\n".encode()
    body = drawn(12 * MIB) + word * 100 + sketching(1000, last=False)
    brief.alpha.rule = rule(answer=answers.stream(body))
    client = reader(brief.stack)
    patiently(lambda: brief.stack.app.hot.in_flight == 1)
    patiently(lambda: brief.stack.connections() == 0 and brief.stack.app.hot.in_flight == 0)
    (row,) = brief.all_settled(since, 1)
    assert row["status"] == "timeout"
    client.close()


def test_the_time_of_a_whole_request_holds_for_who_reads_a_picture_slowly(
    faulty_with, rule, answers, patiently
) -> None:
    """Behind it there is nothing more to send but why it ends."""
    short = faulty_with(server={"timeouts": {"client_stall_s": STALL_S, "total_s": 1.5 * STALL_S}})
    since, body = short.last_row(), answers.HEAD + b"connection: close\r\n\r\n" + drawn(12 * MIB)
    short.alpha.rule = rule(answer=body, ending="hole")
    client = reader(short.stack)
    patiently(lambda: short.stack.app.hot.in_flight == 1)
    limit = time.monotonic() + 12
    while short.stack.app.hot.in_flight and time.monotonic() < limit:
        client.recv(1024)
        time.sleep(0.05)
    assert short.stack.app.hot.in_flight == 0
    (row,) = short.all_settled(since, 1)
    assert (row["status"], row["http_status"]) == ("timeout", 504)
    client.close()


def test_a_client_that_reads_half_of_a_picture_and_leaves(
    brief, rule, answers, sketching, patiently
) -> None:
    since = brief.last_row()
    brief.alpha.rule = rule(answer=answers.stream(sketching(12 * MIB, last=False)))
    with httpx.stream(
        "POST", brief.stack.url + "/v1/chat/completions", trust_env=False,
        headers=brief.stack.headers(), json={"model": "api", "messages": MESSAGES, "stream": True},
    ) as answer:  # fmt: skip
        next(answer.iter_raw(4 * MIB))
    patiently(lambda: brief.stack.app.hot.in_flight == 0)
    (row,) = brief.all_settled(since, 1)
    assert row["status"] in ("client_gone", "finished")


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses"])
def test_an_answer_without_end_ends_in_other_dialects(
    faulty, rule, answers, monkeypatch, path
) -> None:
    """They hold what was said, to say it again at the end."""
    monkeypatch.setattr("gateway.request.dialects.translated_response.HELD_LIMIT_BYTES", MIB)
    word, since = answers.CHOICE % ("x" * 900), faulty.last_row()
    head = answers.HEAD + b"connection: close\r\n\r\n"
    faulty.alpha.rule = rule(answer=head, endless=f"data: {{{word}}}\n\n".encode() * 64)
    faulty.forget()
    asked = {"model": "api", "stream": True}
    asked |= {"messages": MESSAGES, "max_tokens": 5000} if "messages" in path else {"input": "go"}
    answer = faulty.stack.post(path, asked)
    assert last_of(answer) in ("error", "response.failed")
    (row,) = faulty.all_settled(since, 1)
    assert row["status"] == "upstream_error"
    assert row["output_tokens"] > 0
