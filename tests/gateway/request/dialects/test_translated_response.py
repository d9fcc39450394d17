"""Whole requests in other dialects through the running gateway: booked, held back, billed, told."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from held_tokens import read_in_two

from gateway.request.dialects.messages import MessagesDialect
from gateway.request.dialects.translated_response import TranslatedResponse

MESSAGES = "/v1/messages"
RESPONSES = "/v1/responses"
ASK = [{"role": "user", "content": "hello there"}]
ASKED = {"messages": ASK, "max_tokens": 12}
PATHS = {
    MESSAGES: {"messages": ASK, "max_tokens": 12},
    RESPONSES: {"input": "hello there", "max_output_tokens": 12},
}
LAST = {MESSAGES: "message_stop", RESPONSES: "response.incomplete"}
TOOL = {
    "name": "weather",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}},
}


def told(stream: bytes) -> list[dict]:
    """The events of a stream, each as it names itself."""
    found = []
    for part in stream.decode().split("\n\n"):
        if part:
            name, _, data = part.partition("\n")
            found.append(json.loads(data.removeprefix("data: ")))
            assert name == f"event: {found[-1]['type']}"
    return found


def ask(stack, path: str, asked: dict) -> tuple[httpx.Response, list[dict]]:
    """An answer, and its events where it streams: in two pieces, whatever the machine's pace."""
    if not asked["stream"]:
        return stack.post(path, asked), []
    answer, stream = read_in_two(stack, path, asked)
    return answer, told(stream)


def counted(usage: dict) -> dict:
    return {
        "input_tokens": usage["input_tokens"],
        "cached_tokens": usage["cache_read_input_tokens"],
        "cache_write_tokens": usage["cache_creation_input_tokens"],
        "output_tokens": usage["output_tokens"],
    }


def counted_inside(usage: dict) -> dict:
    cached = usage["input_tokens_details"]["cached_tokens"]
    written = usage["input_tokens_details"]["cache_write_tokens"]
    return {
        "input_tokens": usage["input_tokens"] - cached - written,
        "cached_tokens": cached,
        "cache_write_tokens": written,
        "output_tokens": usage["output_tokens"],
    }


def booked(stack, answer: httpx.Response) -> dict:
    (row,) = stack.settled(answer)
    assert (row["status"], row["basis"], row["kind"]) == ("finished", "reported", "chat")
    return row


@pytest.mark.parametrize("model", ["own", "api"])
def test_a_message_is_answered_and_the_books_have_its_usage(stack, model: str) -> None:
    chat = stack.chat(model, max_tokens=12)
    answer = stack.post(MESSAGES, {"model": model, **ASKED})
    assert answer.status_code == 200, answer.text
    document = answer.json()
    assert (document["type"], document["role"]) == ("message", "assistant")
    (block,) = document["content"]
    assert block == {"type": "text", "text": chat.json()["choices"][0]["message"]["content"]}
    assert (document["stop_reason"], document["stop_sequence"]) == ("max_tokens", None)
    row = booked(stack, answer)
    assert counted(document["usage"]) == {name: row[name] for name in counted(document["usage"])}
    assert row["output_tokens"] == 12
    assert answer.headers["request-id"] == answer.headers["x-request-id"] == row["request_id"]
    assert answer.headers["x-breakeven-cost-usd"]


@pytest.mark.parametrize("model", ["own", "api"])
def test_a_stream_says_the_same_and_ends_with_the_booked_usage(stack, model: str) -> None:
    whole = stack.post(MESSAGES, {"model": model, **ASKED}).json()
    answer, stream = read_in_two(stack, MESSAGES, {"model": model, **ASKED, "stream": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = told(stream)
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["message_start", "content_block_start"]
    begun = events[0]["message"]["usage"]
    counted_before = stack.post(f"{MESSAGES}/count_tokens", {"model": model, **ASKED}).json()
    assert begun == {**dict.fromkeys(begun, 0), **counted_before}, "an estimate, and no zero"
    assert begun["input_tokens"] > 0
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert set(kinds[2:-3]) == {"content_block_delta"}
    assert len(kinds) > 6
    text = "".join(event["delta"]["text"] for event in events[2:-3])
    assert [{"type": "text", "text": text}] == whole["content"]
    row = booked(stack, answer)
    usage = counted(events[-2]["usage"])
    assert usage == {name: row[name] for name in usage}
    assert events[-2]["delta"] == {"stop_reason": "max_tokens", "stop_sequence": None}


@pytest.mark.parametrize("model", ["own", "api"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_response_is_whole_and_the_books_have_its_usage(stack, model: str, stream: bool) -> None:
    most = 12
    chat = stack.chat(model, max_tokens=most)
    asked = {"model": model, **PATHS[RESPONSES], "stream": stream, "max_output_tokens": most}
    answer, events = ask(stack, RESPONSES, asked)
    assert answer.status_code == 200
    response = events[-1]["response"] if stream else answer.json()
    assert (response["object"], response["status"]) == ("response", "incomplete")
    (item,) = response["output"]
    text = item["content"][0]["text"]
    assert text == chat.json()["choices"][0]["message"]["content"]
    if stream:
        assert "".join(event["delta"] for event in events if "delta" in event) == text
        assert sum(event["type"] == "response.output_text.delta" for event in events) > 1
    row = booked(stack, answer)
    usage = counted_inside(response["usage"])
    assert usage == {name: row[name] for name in usage}
    assert row["output_tokens"] == most


@pytest.mark.parametrize("stream", [True, False])
def test_a_function_is_called_and_its_output_sent_back(stack, stream: bool) -> None:
    tool = {"type": "function", "name": "weather", "parameters": TOOL["input_schema"]}
    asked = {"model": "own", "tools": [tool], "stream": stream}
    turn = [{"role": "user", "content": "hello there"}]
    answer, events = ask(stack, RESPONSES, {**asked, "input": turn, "tool_choice": "required"})
    deltas = [event["delta"] for event in events if "delta" in event]
    (call,) = (events[-1]["response"] if stream else answer.json())["output"]
    assert (call["type"], call["name"]) == ("function_call", "weather")
    assert json.loads(call["arguments"]) == {"city": "simulated"}
    if stream:
        assert len(deltas) > 1
        assert "".join(deltas) == call["arguments"]
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": "rain"}
    again = stack.post(RESPONSES, {**asked, "input": [*turn, call, output]})
    assert again.status_code == 200, again.text


@pytest.mark.parametrize("stream", [True, False])
def test_tools_are_called(stack, stream: bool) -> None:
    asked = {"model": "own", **ASKED, "max_tokens": 60, "tools": [TOOL]}
    asked["tool_choice"] = {"type": "any"}
    answer, events = ask(stack, MESSAGES, {**asked, "stream": stream})
    parts = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    if stream:
        starts = [event for event in events if event["type"] == "content_block_start"]
        assert len(parts) > 1
        block = starts[-1]["content_block"]
        block["input"] = json.loads("".join(part["partial_json"] for part in parts))
        reason = events[-2]["delta"]["stop_reason"]
    else:
        (block,) = answer.json()["content"]
        reason = answer.json()["stop_reason"]
    assert (block["type"], block["name"], reason) == ("tool_use", "weather", "tool_use")
    assert block["input"] == {"city": "simulated"}
    # The result goes back as Anthropic's clients send it.
    turn = [
        {"role": "assistant", "content": [block]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": block["id"], "content": "rain"}],
        },
    ]
    again = stack.post(MESSAGES, {**asked, "tool_choice": None, "messages": [*ASK, *turn]})
    assert again.status_code == 200, again.text


@pytest.mark.parametrize("path", PATHS)
def test_what_fails_at_one_target_is_answered_by_the_next(stack, path: str) -> None:
    stack.fault("alpha", fault="status", status=503)
    try:
        answer = stack.post(path, {"model": "pair", **PATHS[path], "stream": True})
    finally:
        stack.forgive("alpha")
    assert told(answer.content)[-1]["type"] == LAST[path]
    first, second = stack.settled(answer, 2)
    assert (first["status"], second["status"]) == ("rejected", "finished")
    assert [first["target"], second["target"]] == ["alpha/m", "beta/m"]


@pytest.mark.parametrize("path", PATHS)
def test_it_spills_from_an_own_engine_to_an_api_in_the_same_dialect(run_stack, path: str) -> None:
    """One model, asked under two names: an SLO that its engine cannot keep sends one to the API."""
    chat = {"targets": ["pool:main", "alpha/m"], "compare_with": ["openai/gpt-4o-mini"]}
    policies = [
        {"name": "hasty", "match": {"models": ["hasty"]}, "slo": {"ttft_ms": 0.001}},
        {"name": "plain"},
    ]
    with run_stack(models={"chat": chat, "hasty": chat}, policies=policies) as stack:
        for stream in (True, False):
            own, spilled = (
                stack.post(path, {"model": name, **PATHS[path], "stream": stream})
                for name in ("chat", "hasty")
            )
            (at_home,), (abroad,) = stack.settled(own), stack.settled(spilled)
            assert (at_home["backend"], abroad["backend"]) == ("own", "api")
            assert abroad["spill_reason"] == "ttft"
            if stream:
                kinds = [{event["type"] for event in told(item.content)} for item in (own, spilled)]
            else:
                kinds = [set(item.json()) for item in (own, spilled)]
            assert kinds[0] == kinds[1]


@pytest.mark.parametrize(
    ("path", "first", "last"),
    [
        (MESSAGES, "message_start", ["error"]),
        (RESPONSES, "response.created", ["error", "response.failed"]),
    ],
)
def test_an_answer_that_breaks_ends_with_an_error(stack, path, first: str, last: list) -> None:
    stack.fault("alpha", fault="cut", after_tokens=3)
    try:
        answer = stack.post(path, {"model": "api", **PATHS[path], "stream": True})
    finally:
        stack.forgive("alpha")
    kinds = [event["type"] for event in told(answer.content)]
    assert kinds[0] == first
    assert kinds[-len(last) :] == last
    assert LAST[path] not in kinds
    (row,) = stack.settled(answer)
    assert row["status"] == "upstream_error"


@pytest.mark.parametrize(
    ("body", "status", "kind", "said"),
    [
        ({"model": "nothing", **ASKED}, 404, "not_found_error", "`nothing` does not exist"),
        ({"model": "own", "messages": ASK}, 400, "invalid_request_error", "`max_tokens`"),
        ({"model": "own", **ASKED, "n": 2}, 400, "invalid_request_error", "`n`"),
        ({"model": "own", **ASKED, "stop": "x"}, 400, "invalid_request_error", "`stop`: is"),
        (
            {"model": "own", **ASKED, "stop_sequences": ["x"] * 65},
            400,
            "invalid_request_error",
            "`stop_sequences` has",
        ),
        (
            {"model": "own", **ASKED, "previous_response_id": "x"},
            400,
            "invalid_request_error",
            "`previous_response_id`",
        ),
        ([], 400, "invalid_request_error", "JSON object"),
    ],
)
def test_errors_have_the_dialects_shape(stack, body, status: int, kind: str, said: str) -> None:
    answer = stack.post(MESSAGES, body)
    assert answer.status_code == status
    document = answer.json()
    assert set(document) == {"type", "error", "request_id"}
    assert (document["type"], document["error"]["type"]) == ("error", kind)
    assert said in document["error"]["message"]
    assert document["request_id"] == answer.headers["request-id"]


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        ({"model": "nothing", "input": "x"}, 404, "model"),
        ({"model": "own"}, 400, "input"),
        ({"model": "own", "input": "x", "store": "yes"}, 400, "store"),
        ({"model": "own", "input": "x", "previous_response_id": "r"}, 404, "previous_response_id"),
        ({"model": "own", "input": "x", "background": 5}, 400, "background"),
        ({"model": "own", "input": "x", "messages": ASK}, 400, "messages"),
        ({"model": "own", "input": "x", "max_tokens": 5}, 400, "max_tokens"),
        ({"model": "own", "input": "x", "max_output_tokens": 0}, 400, "max_output_tokens"),
    ],
)
def test_errors_of_responses_have_openais_shape(stack, body, status: int, param: str) -> None:
    answer = stack.post(RESPONSES, body)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert set(error) == {"message", "type", "param", "code"}
    assert error["param"] == param
    assert f"`{param}`" in error["message"] or status == 404


def test_keys_are_taken_as_anthropics_clients_send_them(stack) -> None:
    def ask(**headers: str) -> httpx.Response:
        sent = {"anthropic-version": "2023-06-01", **headers}
        return stack.client.post(stack.url + MESSAGES, json={"model": "own", **ASKED}, headers=sent)

    assert ask(**{"x-api-key": stack.token}).status_code == 200
    assert ask(authorization=f"Bearer {stack.token}").status_code == 200
    refused = ask(**{"x-api-key": "gw_no"})
    assert (refused.status_code, refused.json()["error"]["type"]) == (401, "authentication_error")
    assert ask().json()["error"]["type"] == "authentication_error"


def test_a_wrong_method_is_told_in_the_dialect(stack) -> None:
    answer = stack.get(MESSAGES)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["type"] == "error"
    assert stack.get(RESPONSES).json()["error"]["code"] == "method_not_allowed"


def test_tokens_are_counted_as_the_decision_would(stack) -> None:
    long = [{"role": "user", "content": "hello there " * 100}]
    short, more = (
        stack.post(f"{MESSAGES}/count_tokens", {"model": "own", "messages": messages})
        for messages in (ASK, long)
    )
    assert short.status_code == 200, short.text
    assert short.headers["x-breakeven-tokens"] == "estimated"
    assert set(short.json()) == {"input_tokens"}
    assert 0 < short.json()["input_tokens"] < more.json()["input_tokens"] < 1200
    nobody = stack.post(f"{MESSAGES}/count_tokens", {"model": "nothing", "messages": ASK})
    assert (nobody.status_code, nobody.json()["type"]) == (404, "error")
    assert stack.rows("request_id = :name", name=short.headers["x-request-id"]) == []


class Claude(BaseHTTPRequestHandler):
    """Anthropic's service: keeps what was asked, and read all but three tokens from its cache."""

    def do_POST(self) -> None:
        length = int(self.headers["content-length"])
        self.server.asked.append(json.loads(self.rfile.read(length)))
        usage = {"input_tokens": 3, "cache_read_input_tokens": 40, "output_tokens": 2}
        document = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude",
            "content": [{"type": "text", "text": "Hello"}], "stop_reason": "end_turn",
            "usage": {**usage, "cache_creation_input_tokens": 7},
        }  # fmt: skip
        body = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def claude() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Claude)
    server.asked = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.usefixtures("litellm")
def test_what_is_marked_for_anthropics_cache_reaches_it(run_stack, claude, tmp_path) -> None:
    """Through chat and back: the marks arrive, and its way of counting is told as it was."""
    key = tmp_path / "key"
    key.write_text("no-key")
    address = f"http://127.0.0.1:{claude.server_address[1]}"
    provider = {"kind": "litellm", "api_key_file": str(key), "base_url": address}
    model = {"targets": ["anthropic/claude-haiku-4-5"], "compare_with": ["openai/gpt-4o-mini"]}
    mark = {"cache_control": {"type": "ephemeral"}}
    asked = {
        **ASKED,
        "model": "claude",
        "system": [{"type": "text", "text": "be brief", **mark}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hello", **mark}]}],
        "tools": [{**TOOL, **mark}],
    }
    with run_stack(models={"claude": model}, providers={"anthropic": provider}) as stack:
        answer = stack.post(MESSAGES, asked)
        if answer.status_code != 200:  # once in some hundred runs on a busy machine
            print(answer.text, *stack.settled(answer), sep="\n")
        assert answer.status_code == 200
        (sent,) = claude.asked
        assert sent["system"][0]["cache_control"] == mark["cache_control"]
        assert sent["messages"][0]["content"][0]["cache_control"] == mark["cache_control"]
        assert sent["tools"][0]["cache_control"] == mark["cache_control"]
        assert answer.json()["content"] == [{"type": "text", "text": "Hello"}]
        (row,) = stack.settled(answer)
        usage = counted(answer.json()["usage"])
        assert usage == {name: row[name] for name in usage}
        assert list(usage.values()) == [3, 40, 7, 2]


def read_until(connection: socket.socket, mark: bytes, count: int) -> None:
    read = b""
    while read.count(mark) < count:
        part = connection.recv(65536)
        assert part, f"ended before {mark!r}: {read!r}"
        read += part


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(("model", "upstream"), [("own", "engine"), ("steady", "steady")])
def test_a_hang_up_ends_the_work_and_is_billed(stack, patiently, path, model, upstream) -> None:
    before = len(stack.entries(upstream))
    limit = "max_tokens" if path == MESSAGES else "max_output_tokens"
    long = {limit: 20_000, "stream": True, "ignore_eos": True}
    connection = stack.raw({"model": model, **PATHS[path], **long}, path)
    read_until(connection, b'"delta":', 5)
    connection.close()
    entry = patiently(lambda: stack.entries(upstream)[before:])[0]
    mine = "attempt_id = :id AND settled_us IS NOT NULL"
    (row,) = patiently(lambda: stack.rows(mine, id=entry["request_id"]))
    assert (entry["status"], row["status"]) == ("aborted", "client_gone")
    assert row["output_tokens"] > 0
    assert stack.promises() == [0.0] * 4


@pytest.mark.parametrize("path", PATHS)
def test_the_end_waits_until_the_row_is_durable(stack, patiently, monkeypatch, path) -> None:
    journal = stack.app.hot._dispatcher.metering._journal
    asked, released = asyncio.Event(), asyncio.Event()
    behind = journal._behind
    place, name = (behind, "start_flush") if behind else (journal, "flush")
    flush = getattr(place, name)

    async def slow_flush() -> None:
        asked.set()
        await released.wait()
        await flush()

    async def set_all(*, held: bool) -> None:
        asked.clear()
        released.clear() if held else released.set()

    monkeypatch.setattr(place, name, slow_flush)
    early = b""
    for _ in range(5):
        stack.call(set_all(held=True))
        with stack.raw({"model": "own", **PATHS[path], "stream": True}, path) as connection:
            patiently(asked.is_set)
            early = read_words(connection)
            ends = (b"message_delta", b"block_stop", b"message_stop", b".done", LAST[path].encode())
            for mark in ends:
                assert mark not in early
            stack.call(set_all(held=False))
            read_until(connection, LAST[path].encode(), 2)
        if early:
            break
    assert early


def read_words(connection: socket.socket) -> bytes:
    """What came before the end; nothing where a busy machine made words and end in one piece."""
    read, patience_s = b"", connection.gettimeout()
    connection.settimeout(1.0)
    try:
        while b'"delta":' not in read:
            part = connection.recv(1 << 20)
            assert part, read
            read += part
    except TimeoutError:
        read = b""
    connection.settimeout(patience_s)
    return read


def test_what_says_nothing_here_is_not_sent() -> None:
    async def talk() -> list[dict]:
        sent: list[dict] = []

        async def send(message) -> None:
            sent.append(message)

        task = asyncio.current_task()
        reply = TranslatedResponse(
            MessagesDialect(), send, request_id="req_1", clock=lambda: 0.0, task=task
        )
        body = {"model": b'"m"', "messages": json.dumps(ASK).encode(), "max_tokens": b"5"}
        reply.decode_request(body, max_n=1, session=None, wall_s=0)
        await reply.start(200, [])
        await reply.body(b": a comment\n\n", more=True)
        await reply.body(b'data: {"choices":[{"delta":{"content":"hi"}}]}\n\n', more=True)
        await reply.body(b"data: [DONE]\n\n", more=False)
        return sent

    start, first, last = asyncio.run(talk())
    assert (b"request-id", b"req_1") in start["headers"]
    assert b"text_delta" in first["body"]
    assert first["more_body"]
    assert b"message_stop" in last["body"]
    assert not last["more_body"]
