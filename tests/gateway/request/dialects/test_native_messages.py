"""Requests in Anthropic's Messages to targets that speak them: whole there, whole back, booked."""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date
from typing import Any, Self

import httpx
import pytest
import uvicorn
import yaml

from backends.native_events import MEMBER
from gateway.errors import RequestError
from gateway.http.body import decode_members, encode
from gateway.request.dialects.native_messages import native_request, whole_request

PATH = "/v1/messages"
USAGE = {
    "input_tokens": 40,
    "cache_creation_input_tokens": 30,
    "cache_read_input_tokens": 2000,
    "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
    "output_tokens": 3,
    "service_tier": "standard",
}
PRICE = {
    "usd_per_million": {
        "input": 1, "cached": 0.1, "cache_write": 1.25, "cache_write_1h": 2, "output": 10,
    }
}  # fmt: skip
# In millionths: 40 fresh, 2000 read, 10 and 20 written, 50 made.
BILL_PUSD = 40 * 1_000_000 + 2000 * 100_000 + 10 * 1_250_000 + 20 * 2_000_000 + 50 * 10_000_000
MARK = {"type": "ephemeral", "ttl": "1h"}
PDF = "JVBERi0xLjQK"
# As Claude Code writes one, with members in its order and blocks that chat has no form for.
CODE: dict[str, Any] = {
    "model": "MODEL",
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "read it", "x_new": {"a": 1}}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Let me see.", "signature": "c2lnbmVk"},
                {"type": "redacted_thinking", "data": "aGlkZGVu"},
                {"type": "text", "text": "I read it.", "citations": None},
                {"type": "tool_use", "id": "toolu_1", "name": "Read", "input": {"path": "a.pdf"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [
                        {
                            "type": "document",
                            "source": {
                                "type": "base64", "media_type": "application/pdf", "data": PDF,
                            },
                            "citations": {"enabled": True},
                            "cache_control": MARK,
                        },
                        {"type": "tool_reference", "tool_name": "Read"},
                    ],
                }
            ],
        },
    ],
    "system": [
        {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1"},
        {"type": "text", "text": "You are an agent.", "cache_control": MARK},
    ],
    "tools": [
        {"name": "Read", "description": "é", "input_schema": {"type": "object", "properties": {}}}
    ],
    "metadata": {"user_id": "user_of_ours"},
    "max_tokens": 3200,
    "thinking": {"type": "enabled", "budget_tokens": 2000},
    "context_management": {"edits": [{"type": "clear_thinking_20251015"}]},
    "stream": True,
}  # fmt: skip
FAILING = ("busy", "broken", "cut", "short", "poor")  # targets that a test makes fail
SEARCH = {"type": "web_search_20250305", "name": "web_search", "max_uses": 2}


def event(name: str, **members: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **members})}\n\n".encode()


def delta(index: int, **members: Any) -> bytes:
    return event("content_block_delta", index=index, delta=members)


START = event(
    "message_start",
    message={
        "id": "msg_01", "type": "message", "role": "assistant", "model": "claude-x", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": USAGE,
    },
)  # fmt: skip
TEXT_START = event("content_block_start", index=1, content_block={"type": "text", "text": ""})
ANSWER = [
    START,
    event("content_block_start", index=0, content_block={"type": "thinking", "thinking": ""}),
    event("ping"),
    delta(0, type="thinking_delta", thinking="hm"),
    delta(0, type="signature_delta", signature="c2ln"),
    event("content_block_stop", index=0),
    TEXT_START,
    delta(1, type="text_delta", text="Hello"),
    delta(1, type="citations_delta", citation={"type": "page_location", "cited_text": "é\u2028"}),
    event("content_block_stop", index=1),
    event(
        "message_delta",
        delta={"stop_reason": "pause_turn", "stop_sequence": None},
        usage={"output_tokens": 50},
        context_management={"applied_edits": []},
    ),
    event("message_stop"),
]
WHOLE = {
    "id": "msg_02", "type": "message", "role": "assistant", "model": "claude-x",
    "content": [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"q": "a"}},
        {"type": "text", "text": "It is.", "citations": [{"type": "char_location"}]},
    ],
    "stop_reason": "refusal", "stop_sequence": None,
    "stop_details": {"type": "refusal", "category": "cyber"},
    "usage": {**USAGE, "output_tokens": 50},
    "container": {"id": "container_1"},
}  # fmt: skip


class MessagesUpstream:
    """A server that speaks Messages from a script and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str], bytes]] = []
        self.left = threading.Event()
        self.stream, self.whole, self.status = list(ANSWER), json.dumps(WHOLE).encode(), 200
        self.headers: dict[str, str] = {}
        self.hangs = False
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        options = {"access_log": False, "log_level": "critical", "lifespan": "off"}
        self._server = uvicorn.Server(uvicorn.Config(self, timeout_graceful_shutdown=1, **options))
        self._thread = threading.Thread(target=self._serve, name="messages", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join()

    def _serve(self) -> None:
        asyncio.run(self._server.serve(sockets=[self._socket]))

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        heads = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.asked.append((scope["path"], heads, body))
        streamed = self.status == 200 and json.loads(body).get("stream") is True
        kind = "text/event-stream" if streamed else "application/json"
        told = [(b"content-type", kind.encode())]
        told += [(name.encode(), value.encode()) for name, value in self.headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": told})
        for piece in self.stream if streamed else [self.whole]:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        if self.hangs:
            while (await receive())["type"] != "http.disconnect":
                pass
            self.left.set()
            return
        await send({"type": "http.response.body", "body": b"", "more_body": False})


@pytest.fixture(scope="module")
def shared_upstream() -> Iterator[MessagesUpstream]:
    with MessagesUpstream() as upstream:
        yield upstream


@pytest.fixture
def upstream(shared_upstream: MessagesUpstream) -> MessagesUpstream:
    """The server of the module, as it was made."""
    shared_upstream.asked.clear()
    shared_upstream.left.clear()
    shared_upstream.stream, shared_upstream.status = list(ANSWER), 200
    shared_upstream.whole, shared_upstream.headers = json.dumps(WHOLE).encode(), {}
    shared_upstream.hangs = False
    return shared_upstream


@pytest.fixture(scope="module")
def spoken(running: Any, tmp_path_factory: Any, shared_upstream: MessagesUpstream) -> Iterator[Any]:
    """A gateway with a target that speaks Messages, and one that searches for a fee."""
    state = tmp_path_factory.mktemp("spoken")
    (state / "api.key").write_text("key-of-ours")
    (state / "api.key").chmod(0o600)
    names = ("claude", "searching", "told", *FAILING)
    prices = {f"{name}/m": PRICE for name in names}
    listed = {"source": "test", "source_date": date(2026, 11, 1), "prices": prices}
    (state / "prices.yaml").write_text(yaml.safe_dump(listed))
    claude = {
        "kind": "anthropic",
        "base_url": shared_upstream.url,
        "api_key_file": str(state / "api.key"),
        "on_disconnect": "stops",
    }
    hosted = ["tools", "json_schema", "images", "reasoning", "hosted_tools"]

    def adjust(found: dict[str, Any], _: dict[str, int]) -> None:
        found["prices"] = [str(state / "prices.yaml")]
        found["providers"] |= dict.fromkeys(("claude", *FAILING), claude) | {
            "searching": {**claude, "features": hosted},
            "told": {**claude, "tells_users": True, "betas": ["*"]},
        }
        found["models"] |= {f"{name}/*": "passthrough" for name in names}
        both = {"targets": ["busy/m", "pool:main"], "compare_with": ["claude/m"]}
        found["models"]["both"] = both
        found["policies"] = [{"name": "plain"}]

    with running(state / "host", adjust=adjust) as stack:
        yield stack


def send(stack: Any, asked: dict[str, Any], **headers: str) -> httpx.Response:
    return stack.client.post(
        stack.url + PATH, content=json.dumps(asked).encode(),
        headers={**stack.headers(), "content-type": "application/json", **headers},
    )  # fmt: skip


def test_a_session_of_claude_code_goes_whole_and_comes_back_whole(spoken, upstream) -> None:
    asked = {**CODE, "model": "told/m"}
    answer = send(spoken, asked, **{"anthropic-beta": "a-1,b-2", "anthropic-version": "2023-06-01"})
    assert answer.status_code == 200, answer.text
    assert answer.content == b"".join(ANSWER)
    assert "x-breakeven-ignored" not in answer.headers
    ((path, heads, body),) = upstream.asked
    compact = {"separators": (",", ":"), "ensure_ascii": False}
    assert path == PATH
    assert json.dumps(json.loads(body), **compact) == json.dumps(asked | {"model": "m"}, **compact)
    assert (heads["x-api-key"], heads["anthropic-version"]) == ("key-of-ours", "2023-06-01")
    assert heads["anthropic-beta"] == "a-1,b-2"
    (row,) = spoken.settled(answer)
    assert (row["status"], row["basis"], row["finish_reason"]) == ("finished", "reported", "stop")
    counted = ("input_tokens", "cached_tokens", "cache_write_tokens", "cache_write_1h_tokens")
    assert [row[name] for name in counted] == [40, 2000, 10, 20]
    assert (row["output_tokens"], row["cost_pusd"]) == (50, BILL_PUSD)
    assert row["cost_pusd"] <= row["bound_pusd"]


def test_values_keep_their_bytes_and_their_order(spoken, upstream) -> None:
    text = json.dumps({**CODE, "model": "told/m", "stream": False}, indent=1)
    text = text.replace('"max_tokens": 3200', '"max_tokens": 3200,\n "temperature": 1.0e0')
    answer = spoken.client.post(
        spoken.url + PATH, content=text.encode(),
        headers={**spoken.headers(), "content-type": "application/json"},
    )  # fmt: skip
    assert answer.status_code == 200, answer.text
    ((_, _, body),) = upstream.asked
    sent = decode_members(text.encode())
    sent["model"] = encode("m")
    assert {name: bytes(value) for name, value in decode_members(body).items()} == {
        name: bytes(value) for name, value in sent.items()
    }
    assert list(decode_members(body)) == list(sent)
    assert b'"temperature":1.0e0' in body


def test_an_answer_in_one_piece_is_the_targets_own(spoken, upstream) -> None:
    answer = send(spoken, {**CODE, "model": "claude/m", "stream": False})
    assert answer.content == upstream.whole
    (row,) = spoken.settled(answer)
    assert (row["cost_pusd"], row["finish_reason"]) == (BILL_PUSD, "content_filter")


def test_users_stay_here_and_betas_are_the_operators(spoken, upstream) -> None:
    betas = {"anthropic-beta": "fast-mode-2026-02-01,interleaved-thinking-2025-05-14"}
    asked = {**CODE, "model": "claude/m", "speed": "fast"}
    answer = send(spoken, asked, **betas)
    assert answer.status_code == 200, answer.text
    ((_, heads, body),) = upstream.asked
    assert json.loads(body).keys() == CODE.keys() - {"metadata"}
    assert heads["anthropic-beta"] == "interleaved-thinking-2025-05-14"
    told = answer.headers["x-breakeven-ignored"].split(", ")
    assert told == ["speed", "anthropic-beta.fast-mode-2026-02-01"]


def test_a_hang_up_reaches_the_target_and_is_booked_by_what_was_told(spoken, upstream) -> None:
    upstream.stream, upstream.hangs = ANSWER[:8], True
    asked = json.dumps({**CODE, "model": "claude/m"}).encode()
    head = {**spoken.headers(), "content-type": "application/json"}
    with spoken.client.stream("POST", spoken.url + PATH, content=asked, headers=head) as answer:
        seen = b""
        for piece in answer.iter_raw():
            seen += piece
            if b"Hello" in seen:
                break
    assert seen == b"".join(ANSWER[:8])
    assert upstream.left.wait(20)
    (row,) = spoken.settled(answer.headers["x-request-id"])
    assert row["status"] == "client_gone"
    assert (row["cached_tokens"], row["input_tokens"]) == (2000, 40)


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        ({"tools": [SEARCH]}, "tools[0]"),
        (
            {"mcp_servers": [{"type": "url", "url": "https://x.example", "name": "x"}]},
            "mcp_servers",
        ),
        ({"container": {"skills": [{"skill_id": "pptx", "type": "anthropic"}]}}, "container"),
    ],
)
def test_what_the_provider_runs_needs_a_target_that_declares_it(
    spoken, upstream, asked: dict, place: str
) -> None:
    plain = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9, **asked}
    refused = send(spoken, {"model": "claude/m", **plain})
    assert refused.status_code == 400
    assert "hosted_tools" in refused.json()["error"]["message"]
    assert not upstream.asked
    chats = send(spoken, {"model": "own", **plain})
    assert (chats.status_code, f"`{place}`" in chats.text) == (400, True)
    assert send(spoken, {"model": "searching/m", **plain}).content == upstream.whole
    assert json.loads(upstream.asked[0][2]) == {"model": "m", **plain}


@pytest.mark.parametrize(
    "asked",
    [
        {"container": "container_011"},
        {"container": {"id": "container_011", "skills": []}},
        {"fallbacks": [{"model": "other"}]},
        {"inference_geo": "us"},
        {"n": 2},
        {"messages": [{"role": "user", "content": [
            {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
        ]}]},
        {"messages": [{"role": "user", "content": [
            {"type": "container_upload", "file\\u005fid": "file_1"},
        ]}], "mcp_servers": [{"name": "x"}]},
    ],
)  # fmt: skip
def test_what_may_be_anybodys_or_has_another_price_is_refused(spoken, upstream, asked) -> None:
    plain = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9}
    answer = spoken.client.post(
        spoken.url + PATH,
        content=json.dumps({"model": "searching/m", **plain, **asked}).replace("\\\\u", "\\u"),
        headers={**spoken.headers(), "content-type": "application/json"},
    )
    assert answer.status_code == 400, answer.text
    assert not upstream.asked


def test_an_overloaded_target_is_followed_by_one_that_is_not(spoken, upstream) -> None:
    upstream.status, upstream.headers = 529, {"retry-after": "7"}
    upstream.whole = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    answer = send(spoken, {**CODE, "model": "busy/m"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "7")
    assert answer.json()["error"]["type"] == "overloaded_error"
    (row,) = spoken.settled(answer)
    assert row["cost_pusd"] == 0
    upstream.headers = {}
    plain = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9}
    eased = send(spoken, {"model": "both", **plain})
    assert eased.status_code == 200
    assert eased.headers["x-breakeven-backend"].startswith("pool:main")


def test_an_error_inside_a_stream_ends_it_with_an_error_of_ours(spoken, upstream) -> None:
    failed = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    upstream.stream = [*ANSWER[:8], failed]
    answer = send(spoken, {**CODE, "model": "broken/m"})
    passed, _, last = answer.content.partition(b"event: error\n")
    assert passed == b"".join(ANSWER[:8])
    assert json.loads(last.removeprefix(b"data: "))["error"]["type"] in (
        "overloaded_error", "api_error",
    )  # fmt: skip
    assert spoken.settled(answer)[0]["status"] == "upstream_error"


def test_a_stream_without_its_last_word_is_no_answer(spoken, upstream) -> None:
    upstream.stream = ANSWER[:-1]
    answer = send(spoken, {**CODE, "model": "cut/m"})
    assert answer.content.startswith(b"".join(ANSWER[:10]))
    assert b"event: error" in answer.content
    assert b"message_stop" not in answer.content


def test_a_prompt_beyond_the_context_is_told_as_that(spoken, upstream) -> None:
    upstream.status = 400
    upstream.whole = json.dumps({
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 5 maximum"},
    }).encode()  # fmt: skip
    answer = send(spoken, {**CODE, "model": "short/m"})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "prompt is too long: 9 > 5 maximum"
    chat = spoken.chat("short/m")
    assert chat.json()["error"]["code"] == "context_length_exceeded"


def test_a_spent_balance_is_no_fault_of_the_client(spoken, upstream) -> None:
    upstream.status = 400
    upstream.whole = b'{"error":{"message":"Your credit balance is too low to access it"}}'
    assert send(spoken, {**CODE, "model": "poor/m"}).status_code == 502


def test_chat_is_translated_there_and_back(spoken, upstream) -> None:
    answer = spoken.post("/v1/chat/completions", {
        "model": "claude/m", "max_completion_tokens": 99, "seed": 1,
        "messages": [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"},
        ],
    })  # fmt: skip
    assert answer.status_code == 200, answer.text
    ((path, _, body),) = upstream.asked
    assert path == PATH
    assert json.loads(body) == {
        "model": "m", "max_tokens": 99, "system": [{"type": "text", "text": "Be brief."}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }  # fmt: skip
    document = answer.json()
    assert document["choices"][0]["message"] == {"role": "assistant", "content": "It is."}
    assert document.keys() == {
        "id",
        "object",
        "created",
        "model",
        "choices",
        "usage",
        "service_tier",
    }
    assert answer.headers["x-breakeven-ignored"] == "seed"
    assert spoken.settled(answer)[0]["cost_pusd"] == BILL_PUSD


def test_a_stream_of_chat_has_chats_chunks_alone(spoken, upstream) -> None:
    body = {"model": "claude/m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    answer = spoken.post("/v1/chat/completions", body)
    chunks = [
        json.loads(line[6:]) for line in answer.text.splitlines()
        if line.startswith("data: {")
    ]  # fmt: skip
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert "".join(delta.get("content") or "" for delta in deltas) == "Hello"
    assert "".join(delta.get("reasoning_content") or "" for delta in deltas) == "hm"
    assert not any("usage" in chunk for chunk in chunks)
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert answer.text.endswith("data: [DONE]\n\n")
    assert MEMBER not in answer.text
    assert spoken.settled(answer)[0]["cost_pusd"] == BILL_PUSD


def test_chat_that_has_no_form_there_is_refused_by_its_name(spoken, upstream) -> None:
    answer = spoken.chat("claude/m", function_call="auto", functions=[{"name": "f"}])
    assert (answer.status_code, "`functions`" in answer.text) == (400, True)
    assert not upstream.asked


def test_tokens_are_counted_by_the_target_that_would_serve(spoken, upstream) -> None:
    upstream.whole = b'{"input_tokens": 1234}'
    left = ("max_tokens", "stream")
    asked = {name: value for name, value in CODE.items() if name not in left}
    counted = spoken.post(f"{PATH}/count_tokens", {**asked, "model": "claude/m"})
    assert counted.json() == {"input_tokens": 1234}
    assert counted.headers["x-breakeven-tokens"] == "counted"
    ((path, _, body),) = upstream.asked
    assert (path, json.loads(body)["system"]) == (f"{PATH}/count_tokens", CODE["system"])
    upstream.status = 404  # not every server has the path
    guessed = spoken.post(f"{PATH}/count_tokens", {**asked, "model": "claude/m"})
    assert (guessed.status_code, guessed.headers["x-breakeven-tokens"]) == (200, "estimated")
    searching = {"messages": asked["messages"], "tools": [SEARCH]}
    upstream.status = 200
    told = spoken.post(f"{PATH}/count_tokens", {**searching, "model": "searching/m"})
    assert told.json() == {"input_tokens": 1234}
    refused = spoken.post(f"{PATH}/count_tokens", {**searching, "model": "own"})
    assert (refused.status_code, "`tools[0]`" in refused.text) == (400, True)


# ---------------------------------------------------------------- alone


def refusal(kind: str = "unsupported", param: str = "tools[0]") -> RequestError:
    return RequestError(kind, "no form", param=param)


def test_only_what_chat_has_no_form_for_may_go_whole() -> None:
    members = decode_members(b'{"model": "m", "max_tokens": 5, "messages": []}')
    assert whole_request(members, refusal("bad_request")) is None
    whole = whole_request(members, refusal())
    assert whole is not None
    assert whole.native.members == members
    with suppress(KeyError):
        del members["messages"]


def check_native(build: Callable[[], bytes]) -> Any:
    return native_request(decode_members(build()))


def test_a_file_of_an_outcome_is_no_file_that_is_read() -> None:
    def body(block: str) -> bytes:
        return b'{"messages": [{"content": [%b]}]}' % block.encode()

    told = '{"type": "bash_code_execution_output", "file_id": "file_1"}'
    named = '{"type": "image", "source": {"type": "file", "file_id": "file_1"}}'
    assert check_native(lambda: body(told)) is not None
    assert check_native(lambda: body(named)) is None
