"""A target that answers nonsense: an error in OpenAI's shape, one settled row, and life goes on.

Nothing that a target says is a crash, a wait without end, or money: figures that cannot be are not
booked as they are.
"""

import pytest

from backends import http_connection

MIB = 1024 * 1024
OK = b"HTTP/1.1 200 OK\r\n"
JSON = OK + b"content-type: application/json\r\n"
EVENTS = OK + b"content-type: text/event-stream\r\n"
ANSWER = b'{"choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}]%b}'
BOMB = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03" + b"\x00" * 4000

HEADS = [
    b"",
    b"\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01",
    b"SSH-2.0-OpenSSH_9.2\r\n",
    b"HTTP/9.9 200 OK\r\n\r\n",
    b"HTTP/1.1 banana\r\n\r\n",
    b"HTTP/1.1 099 No\r\n\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n",
    b"HTTP/1.1 301 Moved\r\nlocation: http://169.254.169.254/latest/meta-data\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n",
    b"HTTP/1.1 307 T\r\nlocation: file:///etc/passwd\r\ncontent-length: 0\r\n\r\n",
    b"HTTP/1.1 304 Not Modified\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n" * 3,
    b"HTTP/1.1 103 Early\r\nlink: x\r\n\r\n" * 9000,
    OK + b"x: " + b"y" * MIB + b"\r\n\r\n",
    OK + b"".join(b"x-%d: y\r\n" % number for number in range(5000)) + b"\r\n",
    OK + b"content-length: -1\r\n\r\n{}",
    OK + b"content-length: 99999999999999999999999\r\n\r\n{}",
    OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{} ",
    OK + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    OK + b"transfer-encoding: gzip\r\n\r\n" + BOMB,
    OK + b"transfer-encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n",
    OK + b"transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}",
    OK + b"transfer-encoding: chunked\r\n\r\n-2\r\n{}\r\n0\r\n\r\n",
    OK + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(BOMB) + BOMB,
    OK + b"content-encoding: br\r\ncontent-length: 2\r\n\r\n{}",
    OK + b"bad header\r\n\r\n{}",
    OK + b"x: a\x00b\r\n\r\n{}",
    b"HTTP/1.0 200 OK\r\n\r\n",
]
BODIES = [
    b"", b" ", b"null", b"true", b"7", b'"text"', b"[]", b"[{}]", b"{", b"}", b'{"choices":',
    b"<html>502</html>", b"\xff\xfe\x00", b"{\x00}", b'{"a":"\xff"}', b"[" * 20000,
    b'{"a":' * 20000, b'{"error":{"message":"no","type":"t"}}', b'{"error":"no"}',
    b'{"error":{"message":null,"code":{"a":[1]}},"choices":[]}', b"data: {}\n\n",
    b"\xef\xbb\xbf{", b'{"choices":[}', b"NaN", b"{'a':1}",
]  # fmt: skip
STREAMS = [
    b"<html></html>\n\n", b"HTTP/1.1 200 OK\n\n", b"data: \xff\xfe\n\n", b"data: [\n\n",
    b"data: null\n\n", b"data: 7\n\n", b'data: "x"\n\n', b"data: [1]\n\n", b"data: {\n\n",
    b'data: {"error":{"message":"no"}}\n\n', b'data: {"error":"no"}\n\ndata: [DONE]\n\n',
    b"event: error\ndata: {}\n\n", b"data: " + b"[" * 20000 + b"\n\n", b": comment only\n\n",
    b'data: {"choices":[]}\n\n', b'data: {"choices":7}\n\n',
    b'data: {"choices":[{"index":-5}]}\n\n',
    b"\x00\n\n", b"data: {}\r", b"retry: 1\n\n", b"id: \x00\n\n", b"data:{}\n\ndata:x\n\n",
]  # fmt: skip
COUNTS = [
    b"-1", b"1e300", b"1.5", b'"7"', b"null", b"true", b"[1]", b"{}", b"99999999999999999999",
    b"9223372036854775807", b"NaN", b"-0",
]  # fmt: skip


def bodies(answers) -> list[bytes]:
    whole = [answers.whole(body) for body in BODIES]
    closing = [JSON + b"connection: close\r\n\r\n" + body for body in BODIES]
    return [*HEADS, *whole, *closing]


def streams(answers) -> list[bytes]:
    chunked = [answers.stream(body) for body in STREAMS]
    closing = [EVENTS + b"connection: close\r\n\r\n" + body for body in STREAMS]
    return [*HEADS, *chunked, *closing]


@pytest.mark.parametrize("model", ["own", "api"])
@pytest.mark.parametrize("stream", [False, True])
def test_nonsense_is_an_error_in_openais_shape(faulty, rule, answers, stream, model) -> None:
    cases = streams(answers) if stream else bodies(answers)
    since = faulty.last_row()
    for case in cases:
        answer = faulty.ask(model, rule(answer=case, ending="fin"), stream=stream)
        if answer.status_code == 200:
            assert stream, case[:200]
            assert answer.content.count(b'{"error"') == 1, case[:200]
            assert b"[DONE]" not in answer.content
        else:
            assert answer.status_code in (502, 504), case[:200]
            assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    assert faulty.ask(model, rule(), max_tokens=2).status_code == 200
    *rows, last = faulty.all_settled(since, len(cases) + 1)
    assert {row["status"] for row in rows} <= {"upstream_error", "timeout", "rejected"}
    assert last["status"] == "finished"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("model", ["own", "api"])
def test_usage_that_cannot_be_is_not_booked(faulty, rule, answers, model, stream) -> None:
    since = faulty.last_row()
    for count in COUNTS:
        usage = b'"usage":{"prompt_tokens":%b,"completion_tokens":%b}' % (count, count)
        if stream:
            body = answers.events().replace(answers.USAGE.encode(), b'"choices":[],' + usage)
            text = answers.stream(body)
        else:
            text = answers.whole(ANSWER % (b"," + usage))
        answer = faulty.ask(model, rule(answer=text), stream=stream, max_tokens=20)
        # A figure that no JSON number may have makes the answer none; all others reach the client.
        assert answer.status_code in (200, 502), count
    rows = faulty.all_settled(since, len(COUNTS))
    assert (
        sum(row["flag"] == "disputed" for row in rows) >= len(COUNTS) - 3
    )  # `null`, `-0`, no JSON
    for row in rows:
        assert 0 <= row["output_tokens"] <= 20, row["basis"]
        assert 0 <= row["input_tokens"] <= 10_000
        assert 0 <= row["cost_pusd"] <= max(row["bound_pusd"], 1)


TRUE, OVER, UNDER, PROMPT = (7, 4), (7, 5000), (7, 0), (900_000, 4)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("figures", "flag"),
    [(TRUE, None), (OVER, "disputed"), (UNDER, "disputed"), (PROMPT, "disputed")],
)
def test_usage_against_what_was_asked_and_said(faulty, rule, answers, stream, figures, flag):
    """Plausible in shape, and not true: marked in the books, and never above the hold."""
    since, usage = (
        faulty.last_row(),
        b'"usage":{"prompt_tokens":%d,"completion_tokens":%d}' % figures,
    )
    if stream:
        body = answers.events().replace(answers.USAGE.encode(), b'"choices":[],' + usage)
        text = answers.stream(body)
    else:
        text = answers.whole(ANSWER % (b"," + usage))
    assert faulty.ask("api", rule(answer=text), stream=stream, max_tokens=20).status_code == 200
    (row,) = faulty.all_settled(since, 1)
    assert row["flag"] == flag
    assert row["cost_pusd"] <= row["bound_pusd"]
    assert row["output_tokens"] <= 20


def test_bytes_without_an_end_cost_little_memory(faulty, rule, answers, patiently) -> None:
    """A line, a head and an answer of the target's that never end."""
    cases = [
        rule(answer=OK, endless=b"x: y\r\n" * 1000),
        rule(answer=EVENTS + b"\r\n", endless=b"x" * 65536),
        rule(answer=JSON + b"\r\n[", endless=b"1," * 32768),
        rule(answer=EVENTS + b'\r\ndata: {"a":"', endless=b"x" * 65536),
    ]
    for number, case in enumerate(cases):
        # An answer may have 64 MiB, an event 32 if it has data, else 1; the rest lies in sockets,
        # and a kernel gives one that is read in jerks up to 32: who reads on without end passes
        # that each time.
        limit = {2: 80 * MIB, 3: 48 * MIB}.get(number, 8 * MIB)
        for _ in range(3):
            answer = faulty.ask("api", case, stream=number in (1, 3))
            assert answer.status_code == 502, number
            if faulty.alpha.seen[-1].passed <= limit:
                break
        assert faulty.alpha.seen[-1].passed <= limit
    patiently(lambda: faulty.alpha.seen[-1].gone_s)


def test_without_limits_on_heads_an_endless_one_is_read_on(faulty, rule, monkeypatch) -> None:
    """The negative control."""
    monkeypatch.setattr(http_connection, "HEAD_LIMIT_BYTES", 1 << 40)
    monkeypatch.setattr(http_connection, "HEADER_LIMIT_COUNT", 1 << 40)
    heads = rule(answer=OK + b"x: y\r\n" * 200_000, ending="hole")
    client = faulty.stack.raw({"model": "api", "messages": [{"role": "user", "content": "x"}]})
    client.close()
    faulty.alpha.rule = heads
    client = faulty.stack.raw({"model": "api", "messages": [{"role": "user", "content": "x"}]})
    client.settimeout(0.5)
    with pytest.raises(TimeoutError):
        client.recv(100)
    client.close()
