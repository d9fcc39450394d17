"""The wire of targets that speak Messages: heads, whose words an error is in, and hang-ups."""

import json

import pytest
from msgspec.structs import replace

from backends.anthropic import COUNT_PATH, MESSAGES_PATH, AnthropicBackend
from backends.base import Call, Deadlines
from backends.errors import (
    BackendError,
    InvalidResponse,
    RequestDeclined,
    UpstreamBroken,
    UpstreamOverloaded,
    UpstreamRejected,
)
from backends.exchange import read_all
from backends.http import HttpClient
from backends.openai import Credentials
from backends.refusal import TOO_LONG, openai_refusal
from backends.secret import Secret

KEY = "sk-ant-api03-0123456789"
BODY = b'{"model":"m","max_tokens":5,"messages":[]}'


@pytest.fixture
async def client():
    made = HttpClient()
    yield made
    await made.aclose()


def backend(upstream, client, *, key: str = KEY, path: str = "", **options) -> AnthropicBackend:
    return AnthropicBackend(
        upstream.url + path, Credentials(Secret(key)), client=client,
        wall_clock=lambda: 1_700_000_000.0, **options,
    )  # fmt: skip


def call(path: str = MESSAGES_PATH, *, stream: bool = False, **headers: str) -> Call:
    return Call(path, BODY, stream, headers, Deadlines(connect_s=5, head_s=5))


async def read_into(seen: list[bytes], exchange) -> None:
    """Keep what came before it broke."""
    async for piece in exchange:
        seen.append(piece)  # noqa: PERF401  (a comprehension would lose it)


def head_of(upstream, number: int = 0) -> dict[str, str]:
    first, *lines = upstream.requests[number].split(b"\r\n\r\n")[0].decode().split("\r\n")
    named = dict(line.split(": ", 1) for line in lines)
    assert len(named) == len(lines)
    return {"": first, **named}


@pytest.mark.parametrize("path", ["", "/v1", "/v1/"])
async def test_a_head_has_key_version_and_the_betas_that_may_pass(upstream, wire, client, path):
    upstream.script = lambda n: [wire.respond(b"{}")]
    sent = call(**{
        "x-request-id": "r1", "anthropic-beta": "a-2025-01-01, b-1,c-2", "cookie": "c",
        "anthropic-version": "2024-01-01", "authorization": "Bearer client",
    })  # fmt: skip
    made = backend(upstream, client, path=path, betas=("a-*", "c-2"))
    await read_all(await made.open(sent), 100)
    head = head_of(upstream)
    assert head[""] == "POST /v1/messages HTTP/1.1"
    assert (head["x-api-key"], head["authorization"]) == (KEY, f"Bearer {KEY}")
    assert (head["anthropic-version"], head["x-request-id"]) == ("2024-01-01", "r1")
    assert head["anthropic-beta"] == "a-2025-01-01,c-2"
    assert "cookie" not in head
    assert sent.transmission.ignored == ("anthropic-beta.b-1",)


async def test_a_token_of_a_person_is_a_bearers(upstream, wire, client):
    upstream.script = lambda n: [wire.respond(b"{}")]
    await read_all(await backend(upstream, client, key="sk-ant-oat01-x").open(call()), 100)
    head = head_of(upstream)
    assert ("x-api-key" in head, head["authorization"]) == (False, "Bearer sk-ant-oat01-x")
    assert head["anthropic-version"] == "2023-06-01"


async def test_counts_come_back_as_they_are(upstream, wire, client):
    upstream.script = lambda n: [wire.respond(b'{"input_tokens":7}')]
    exchange = await backend(upstream, client).open(call(COUNT_PATH))
    assert json.loads(await read_all(exchange, 100)) == {"input_tokens": 7}
    assert head_of(upstream)[""] == "POST /v1/messages/count_tokens HTTP/1.1"


@pytest.mark.parametrize("path", [MESSAGES_PATH, COUNT_PATH, "/chat/completions"])
async def test_turns_of_other_models_go_as_claude_takes_them(upstream, wire, client, path: str):
    upstream.script = lambda n: [wire.respond(b"{}")]
    function = {"name": "f", "arguments": "{}"}
    call_of_chat = {"id": "f:0", "type": "function", "function": function}
    native = {"role": "assistant", "content": [
        {"type": "thinking", "thinking": "hm", "signature": ""},
        {"type": "tool_use", "id": "f:0", "name": "f", "input": {}},
    ]}  # fmt: skip
    chats = {"role": "assistant", "tool_calls": [call_of_chat]}
    is_chat = path == "/chat/completions"
    asked = {"model": "claude-x", "max_tokens": 5, "messages": [chats if is_chat else native]}
    sent = replace(call(path), body=json.dumps(asked).encode())
    await read_all(await backend(upstream, client).open(sent), 100)
    got = json.loads(upstream.requests[0].split(b"\r\n\r\n", 1)[1])
    (block,) = got["messages"][0]["content"]
    assert (block["type"], ":" in block["id"]) == ("tool_use", False)
    assert sent.transmission.ignored == (() if is_chat else ("messages.thinking",))


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        ("529 Overloaded", b'{"error":{"type":"overloaded_error"}}', UpstreamOverloaded),
        ("429 Many", b'{"error":{"type":"rate_limit_error"}}', UpstreamOverloaded),
        ("400 Bad", b'{"error":{"message":"Your credit balance is too low"}}', UpstreamRejected),
    ],
)
async def test_failures_have_their_kind(upstream, wire, client, status: str, body, kind):
    upstream.script = lambda n: [wire.respond(body, status, "retry-after: 9\r\n")]
    with pytest.raises(kind) as raised:
        await backend(upstream, client).open(call())
    assert raised.value.status == int(status[:3])
    assert kind is UpstreamRejected or raised.value.retry_after_s == 9


@pytest.mark.parametrize(
    ("status", "message", "too_long"),
    [
        ("400 Bad", "prompt is too long: 210000 tokens > 200000 maximum", True),
        ("400 Bad", "input length and `max_tokens` exceed context limit", True),
        ("400 Bad", "max_tokens: must be at least 1", False),
    ],
)
async def test_refusals_tell_what_they_are_about(upstream, wire, client, status, message, too_long):
    told = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    upstream.script = lambda n: [wire.respond(json.dumps(told).encode(), status)]
    exchange = await backend(upstream, client).open(call())
    body = await read_all(exchange, 1000)
    assert exchange.status == int(status[:3])
    error = json.loads(openai_refusal(body, exchange.status))["error"]
    assert (error["message"], error["type"]) == (message, "invalid_request_error")
    assert (TOO_LONG.encode() in body, error["code"]) == (
        too_long, "context_length_exceeded" if too_long else None,
    )  # fmt: skip


async def test_chat_without_a_form_is_declined_before_anything_leaves(upstream, client):
    sent = replace(call("/chat/completions"), body=b'{"model":"m","messages":[],"n":2}')
    with pytest.raises(RequestDeclined) as declined:
        await backend(upstream, client).open(sent)
    assert (declined.value.status, declined.value.sent) == (400, False)
    assert b"`n`" in declined.value.body
    assert not upstream.requests


@pytest.mark.parametrize(
    ("end", "raised"),
    [
        (b'data: {"type":"error","error":{"type":"overloaded_error"}}', UpstreamOverloaded),
        (b"", UpstreamBroken),
    ],
)
async def test_an_end_before_the_last_word_is_broken(upstream, wire, client, end, raised):
    part = b'data: {"type":"message_start","message":{"id":"a"}}\n\n'
    pieces = [piece for piece in (part, end) if piece]
    upstream.script = lambda n: [wire.STREAM_HEAD, wire.chunked(*pieces)]
    exchange = await backend(upstream, client).open(call(stream=True))
    seen: list[bytes] = []
    with pytest.raises(raised):
        await read_into(seen, exchange)
    assert part[6:-2] in b"".join(seen)


async def test_a_stream_that_is_no_stream_is_no_answer(upstream, wire, client):
    upstream.script = lambda n: [wire.respond(b'{"content":[]}')]
    with pytest.raises(InvalidResponse):
        await backend(upstream, client).open(call(stream=True))


async def test_closing_it_is_seen_at_the_target(upstream, wire, client):
    part = b'data: {"type":"ping"}\n\n'
    upstream.script = lambda n: [wire.STREAM_HEAD, b"%x\r\n%b\r\n" % (len(part), part), wire.HANG]
    exchange = await backend(upstream, client).open(call(stream=True))
    assert await anext(aiter(exchange))
    await exchange.aclose()
    await exchange.aclose()
    await upstream.until(lambda: upstream.gone_at)


async def test_silence_has_its_deadline_and_pings_are_none(upstream, wire, client):
    part = b'data: {"type":"ping"}\n\n'
    piece = b"%x\r\n%b\r\n" % (len(part), part)
    upstream.script = lambda n: [wire.STREAM_HEAD, piece, 0.1, piece, 0.1, piece, 0.1, wire.HANG]
    sent = replace(call(stream=True), deadlines=Deadlines(5, 5, idle_s=0.2))
    exchange = await backend(upstream, client).open(sent)
    seen: list[bytes] = []
    with pytest.raises(BackendError) as silent:
        await read_into(seen, exchange)
    assert (silent.value.kind, len(seen)) == ("idle_timeout", 3)
    await exchange.aclose()
