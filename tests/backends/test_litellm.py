import asyncio
import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from backends.base import Call, Deadlines
from backends.charged_errors import refusal_usage
from backends.errors import (
    BackendError,
    HeadTimeout,
    IdleTimeout,
    RequestUnsendable,
    ServerError,
    UpstreamBroken,
    UpstreamOverloaded,
    UpstreamUnreachable,
    WrongAddress,
)
from backends.exchange import read_all
from backends.litellm import _LOGGERS, LiteLLMBackend, load
from backends.openai import Credentials
from backends.secret import Secret

KEY = "sk-ant-api03-canary-0123456789abcdef"
USAGE = {"input_tokens": 10, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 30}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"

pytestmark = [
    # LiteLLM's own, on import and in its background worker; nothing of ours.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*Pydantic.*"),
]


def events(*, tool: bool = False) -> list[bytes]:
    """An Anthropic stream, as its reference shows it."""
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "content": [],
        "model": "claude-x", "stop_reason": None, "usage": {**USAGE, "output_tokens": 1},
    }  # fmt: skip
    block = {"type": "text", "text": ""}
    deltas = [{"type": "text_delta", "text": "Hél"}, {"type": "text_delta", "text": "lo"}]
    if tool:
        block = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": part} for part in ('{"a":', "1}")]
    reason = "tool_use" if tool else "end_turn"
    values = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        *[{"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas],
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}},
        {"type": "message_stop"},
    ]
    return [f"event: {v['type']}\ndata: {json.dumps(v)}\n\n".encode() for v in values]


def answer() -> bytes:
    return json.dumps(
        {
            "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x",
            "content": [{"type": "text", "text": "Hello"}], "stop_reason": "end_turn",
            "usage": {**USAGE, "output_tokens": 7},
        }
    ).encode()  # fmt: skip


@pytest.fixture
async def target(upstream):
    made = LiteLLMBackend("anthropic", Credentials(Secret(KEY)), base_url=upstream.url)
    yield made
    await made.aclose()


def call(*, stream: bool = False, deadlines: Deadlines | None = None, **more) -> Call:
    body = {"model": "claude-x", "messages": [{"role": "user", "content": "hi"}], **more}
    return Call(
        "/chat/completions", json.dumps(body).encode(), stream,
        deadlines=deadlines or Deadlines(connect_s=5, head_s=30, idle_s=10),
    )  # fmt: skip


def data(body: bytes) -> list:
    parts = body.decode().split("\n\n")
    assert parts.pop() == ""
    assert parts.pop() == "data: [DONE]"
    return [json.loads(part.removeprefix("data: ")) for part in parts]


async def test_a_whole_answer_in_openai_form(upstream, wire, target):
    upstream.script = lambda n: [wire.respond(answer())]
    exchange = await target.open(call(max_tokens=50, temperature=0.5))
    assert (exchange.status, exchange.headers["content-type"]) == (200, "application/json")
    value = json.loads(await read_all(exchange, 10_000))
    assert value["object"] == "chat.completion"
    assert value["choices"][0]["message"]["content"] == "Hello"
    assert value["choices"][0]["finish_reason"] == "stop"
    # LiteLLM puts Anthropic's cached tokens inside the prompt's, as OpenAI does.
    usage = value["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (60, 7)
    assert usage["prompt_tokens_details"]["cached_tokens"] == 30
    assert usage["cache_creation_input_tokens"] == 20
    head, body = upstream.requests[0].split(b"\r\n\r\n")
    assert f"x-api-key: {KEY}".encode() in head
    assert json.loads(body)["max_tokens"] == 50


ENDINGS = [
    ({"stop_reason": "model_context_window_exceeded"}, "length", None),
    ({"stop_reason": "stop_sequence", "stop_sequence": 'EN"D'}, "stop", 'EN"D'),
    ({"stop_reason": "refusal", "stop_details": {"type": "refusal", "category": "bio"}},
     "content_filter", None),
    ({"stop_reason": "pause_turn"}, "stop", None),
    ({"stop_reason": "end_turn"}, "stop", None),
]  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("ending", "finish", "stop"), ENDINGS)
async def test_why_it_ended_is_told(upstream, wire, target, stream, ending, finish, stop):
    last = {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 7}}
    sent = events()
    sent[-2] = f"event: message_delta\ndata: {json.dumps(last)}\n\n".encode()
    whole = json.dumps({**json.loads(answer()), **ending}).encode()
    upstream.script = lambda n: [HEAD, wire.chunked(*sent)] if stream else [wire.respond(whole)]
    exchange = await target.open(call(stream=stream))
    body = await read_all(exchange, 100_000)
    chunks = data(body) if stream else [json.loads(body)]
    choice = [chunk["choices"][0] for chunk in chunks if chunk["choices"]][-1]
    assert choice["finish_reason"] == finish
    assert choice.get("stop_reason") == stop
    plain = ending["stop_reason"] in ("end_turn", "stop_sequence")  # chat has a form for these
    native = None if plain else ending["stop_reason"]
    assert choice.get("native_finish_reason") == native
    assert choice.get("stop_details") == ending.get("stop_details")


@pytest.mark.parametrize("stream", [False, True])
async def test_what_the_provider_says_of_its_limits_is_kept(upstream, wire, target, stream):
    limits = "anthropic-ratelimit-requests-remaining: 3\r\nset-cookie: secret\r\n"
    head = HEAD.replace(b"\r\n\r\n", f"\r\n{limits}\r\n".encode())
    whole = wire.respond(answer(), headers=limits)
    upstream.script = lambda n: [head, wire.chunked(*events())] if stream else [whole]
    exchange = await target.open(call(stream=stream))
    assert exchange.headers["anthropic-ratelimit-requests-remaining"] == "3"
    assert "set-cookie" not in exchange.headers
    await read_all(exchange, 100_000)


async def test_a_stream_in_openai_form_with_usage_last(upstream, wire, target):
    upstream.script = lambda n: [HEAD, wire.chunked(*events())]
    exchange = await target.open(call(stream=True))
    chunks = data(await read_all(exchange, 100_000))
    said = [c["choices"][0]["delta"].get("content") for c in chunks if c["choices"]]
    assert "".join(filter(None, said)) == "Héllo"
    assert [c["choices"][0]["finish_reason"] for c in chunks if c["choices"]][-1] == "stop"
    assert [index for index, c in enumerate(chunks) if "usage" in c] == [0, len(chunks) - 1]
    begun, final = chunks[0]["usage"], chunks[-1]
    assert (begun["prompt_tokens"], begun["completion_tokens"]) == (60, 0)  # as it was told first
    assert final["choices"] == []
    assert (final["usage"]["prompt_tokens"], final["usage"]["completion_tokens"]) == (60, 7)
    assert final["usage"]["prompt_tokens_details"]["cached_tokens"] == 30
    assert final["usage"]["cache_creation_input_tokens"] == 20
    assert {c["id"] for c in chunks} == {final["id"]}


GEMINI = {
    "candidates": [
        {"content": {"parts": [{"text": "Hi"}], "role": "model"}, "finishReason": "STOP"}
    ],
    "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 2, "totalTokenCount": 7},
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("asked", "sent"),
    [
        ({"service_tier": "flex"}, "flex"),
        ({"service_tier": "priority"}, "priority"),
        ({"service_tier": "auto"}, None),  # LiteLLM would make it `priority`
        ({"service_tier": None}, None),
        ({}, None),
    ],
)
async def test_the_tier_asked_for_is_sent_and_the_tier_served_is_told(
    upstream, wire, stream, asked, sent
):
    """Gemini names in a header what it served, which need not be what was asked for."""
    told, text = "x-gemini-service-tier: standby\r\n", json.dumps(GEMINI).encode()
    head = HEAD.replace(b"\r\n\r\n", f"\r\n{told}\r\n".encode())
    whole = [wire.respond(text, headers=told)]
    parts = [head, wire.chunked(b"data: " + text + b"\r\n\r\n")]
    upstream.script = lambda n: parts if stream else whole
    target = LiteLLMBackend("gemini", Credentials(Secret(KEY)), base_url=upstream.url)
    exchange = await target.open(call(stream=stream, model="gemini-2.5-flash", **asked))
    answer = await read_all(exchange, 100_000)
    served = data(answer)[-1] if stream else json.loads(answer)
    assert served["service_tier"] == "standby"
    assert json.loads(upstream.requests[0].split(b"\r\n\r\n")[1]).get("serviceTier") == sent
    await target.aclose()


async def test_a_tier_that_litellm_does_not_take_is_dropped(upstream, wire, target):
    """The tier that Anthropic served is in its usage, and is told with it."""
    whole = answer().replace(b'"output_tokens": 7', b'"output_tokens": 7, "service_tier": "x"')
    upstream.script = lambda n: [wire.respond(whole)]
    exchange = await target.open(call(service_tier="flex"))
    assert json.loads(await read_all(exchange, 100_000))["usage"]["service_tier"] == "x"
    assert "service_tier" not in json.loads(upstream.requests[0].split(b"\r\n\r\n")[1])


@pytest.mark.parametrize("stream", [False, True])
async def test_what_litellm_leaves_out_is_told(upstream, wire, target, stream):
    parts = [HEAD, wire.chunked(*events())]
    upstream.script = lambda n: parts if stream else [wire.respond(answer())]
    asked = call(stream=stream, seed=5, top_k=4, temperature=0.5, logit_bias=None, max_tokens=9)
    exchange = await target.open(asked)
    await exchange.aclose()
    assert asked.transmission.ignored == ("seed", "top_k")


async def test_tool_calls_come_delta_by_delta(upstream, wire, target):
    upstream.script = lambda n: [HEAD, wire.chunked(*events(tool=True))]
    tools = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
    exchange = await target.open(call(stream=True, tools=tools))
    chunks = data(await read_all(exchange, 100_000))
    deltas = [c["choices"][0]["delta"] for c in chunks if c["choices"]]
    calls = [piece for delta in deltas for piece in delta.get("tool_calls", [])]
    assert "".join(t["function"]["arguments"] for t in calls) == '{"a":1}'
    assert len(calls) == 3
    assert calls[0]["id"] == "toolu_1"
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert json.loads(upstream.requests[0].split(b"\r\n\r\n")[1])["tools"][0]["name"] == "f"


async def test_content_leaves_before_the_answer_is_over(upstream, wire, target):
    upstream.script = lambda n: [HEAD, *[wire.chunked(e, end=b"") for e in events()[:3]], wire.HANG]
    exchange = await target.open(call(stream=True))
    assert "Hél" in (await anext(aiter(exchange))).decode()
    await exchange.aclose()


async def test_a_stream_whose_lines_come_one_by_one_is_whole(upstream, wire, target):
    """Red before: LiteLLM reads no further than the last event's name, and its data lagged."""
    lines = b"".join(events()).splitlines(keepends=True)
    steps = [step for line in lines for step in (wire.chunked(line, end=b""), 0.02)]
    upstream.script = lambda n: [HEAD, *steps, wire.chunked()]
    exchange = await target.open(call(stream=True))
    assert data(await read_all(exchange, 100_000))[-1]["usage"]["completion_tokens"] == 7


async def test_each_of_many_stop_sequences_is_sent(upstream, wire, target):
    """Red before: LiteLLM sent the first four, which are OpenAI's most."""
    upstream.script = lambda n: [wire.respond(answer())]
    exchange = await target.open(call(stop=list("abcdef")))
    await exchange.aclose()
    sent = json.loads(upstream.requests[0].split(b"\r\n\r\n")[1])
    assert sent["stop_sequences"] == list("abcdef")


async def test_closing_early_aborts_the_upstream(upstream, wire, target):
    upstream.script = lambda n: [HEAD, *[wire.chunked(e, end=b"") for e in events()[:3]], wire.HANG]
    exchange = await target.open(call(stream=True))
    await anext(aiter(exchange))
    await exchange.aclose()
    await exchange.aclose()
    await upstream.until(lambda: upstream.gone_at)


@pytest.mark.parametrize("stream", [False, True])
async def test_cancelling_before_the_head_aborts_the_upstream(upstream, wire, target, stream):
    upstream.script = lambda n: [wire.HANG]
    task = asyncio.create_task(target.open(call(stream=stream)))
    await upstream.until(lambda: upstream.requests)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await upstream.until(lambda: upstream.gone_at)


async def test_deadlines_are_ours(upstream, wire, target):
    await target.start()
    upstream.script = lambda n: [wire.HANG]
    with pytest.raises(HeadTimeout):
        await target.open(call(deadlines=Deadlines(head_s=0.3)))
    await upstream.until(lambda: upstream.gone_at)
    upstream.script = lambda n: [HEAD, *[wire.chunked(e, end=b"") for e in events()[:3]], wire.HANG]
    exchange = await target.open(call(stream=True, deadlines=Deadlines(head_s=9, idle_s=0.3)))
    with pytest.raises(IdleTimeout):
        await read_all(exchange, 10_000)
    await upstream.until(lambda: len(upstream.gone_at) == 2)


async def test_pings_of_a_provider_are_life(upstream, wire, target):
    """It thinks for longer than the patience with silence, and says that it does."""
    await target.start()
    parts = [wire.chunked(event, end=b"") for event in events()]
    ping = wire.chunked(b'event: ping\ndata: {"type": "ping"}\n\n', end=b"")
    pings = [step for _ in range(8) for step in (0.1, ping)]
    upstream.script = lambda n: [HEAD, *parts[:2], *pings, *parts[2:], wire.chunked()]
    exchange = await target.open(call(stream=True, deadlines=Deadlines(head_s=9, idle_s=0.5)))
    assert b"H\xc3\xa9l" in await read_all(exchange, 10_000)


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        (lambda w: [HEAD, *[w.chunked(e, end=b"") for e in events()[:4]], w.CLOSE], "cut off"),
        (lambda w: [HEAD, w.chunked(*events()[:4])], "ended, but not said to be over"),
        (lambda w: [HEAD, w.chunked(*events()[:3], b"event: x\ndata: {bad\n\n")], "garbage"),
    ],
)
async def test_a_stream_that_breaks_is_never_a_whole_one(
    upstream, wire, target, steps: Callable, reason
):
    upstream.script = lambda n: steps(wire)
    exchange = await target.open(call(stream=True))
    assert "Hél" in (await anext(aiter(exchange))).decode()
    with pytest.raises(UpstreamBroken) as caught:
        await read_all(exchange, 10_000)
    assert KEY not in str(caught.value), reason


def failure(message: str, kind: str = "api_error") -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("429 Too Many", UpstreamOverloaded),
        ("529 Overloaded", UpstreamOverloaded),
        ("503 No", UpstreamOverloaded),
        ("500 Oops", ServerError),
        ("502 Bad", ServerError),
    ],
)
async def test_refusals_and_faults_are_tried_once_and_translated(
    upstream, wire, target, status, kind
):
    secret = failure(f"your key {KEY} and prompt")
    upstream.script = lambda n: [wire.respond(secret, status, "retry-after: 7\r\n")]
    with pytest.raises(kind) as caught:
        await target.open(call())
    assert len(upstream.requests) == 1
    assert caught.value.__cause__ is None
    assert KEY not in f"{caught.value!r} {caught.value}"
    assert caught.value.retry_after_s == 7.0


@pytest.mark.parametrize("status", [400, 404, 422])
async def test_other_refusals_are_the_answer_without_secrets(upstream, wire, target, status):
    told = failure(f"messages: too long, key {KEY}", "invalid_request_error")
    upstream.script = lambda n: [wire.respond(told, f"{status} No")]
    exchange = await target.open(call(stream=True))
    assert exchange.status == status
    body = await read_all(exchange, 10_000)
    assert KEY.encode() not in body
    assert set(json.loads(body)["error"]) == {"message", "type", "param", "code"}
    assert "too long" in json.loads(body)["error"]["message"]


@pytest.mark.parametrize("status", [400, 429, 500])
async def test_what_an_error_counts_is_charged(upstream, wire, target, status):
    """Red before: LiteLLM's words were all that was left of it."""
    counted = {"input_tokens": 8, "output_tokens": 5}
    told = json.loads(failure("no")) | {"usage": counted}
    upstream.script = lambda n: [wire.respond(json.dumps(told).encode(), f"{status} No")]
    if status == 400:
        body = await read_all(await target.open(call()), 10_000)
        assert refusal_usage(body) == counted
        return
    with pytest.raises(BackendError) as caught:
        await target.open(call())
    assert (caught.value.billable, caught.value.usage) == (True, counted)


async def test_refused_credentials_are_not_the_clients_to_read(upstream, wire, target):
    upstream.script = lambda n: [wire.respond(failure(f"bad key {KEY}"), "401 No")]
    exchange = await target.open(call())
    assert exchange.status == 401
    assert b"gateway's credentials" in await read_all(exchange, 10_000)


async def test_nobody_listens(free_port):
    target = LiteLLMBackend(
        "anthropic", Credentials(Secret(KEY)), base_url=f"http://127.0.0.1:{free_port}"
    )
    with pytest.raises(UpstreamUnreachable):
        await target.open(call())
    await target.aclose()


async def test_a_redirect_is_not_followed(upstream, wire, target):
    moved = wire.respond(b"", "302 Found", f"location: {upstream.url}/elsewhere\r\n")
    upstream.script = lambda n: [moved]
    with pytest.raises(WrongAddress):
        await target.open(call())
    assert len(upstream.requests) == 1


async def test_a_body_cannot_steer_litellm(upstream, wire, target):
    upstream.script = lambda n: [wire.respond(answer())]
    exchange = await target.open(call(
        api_base="http://127.0.0.1:1", base_url="http://127.0.0.1:1", api_key="theirs",
        custom_llm_provider="openai", mock_response="no", fallbacks=["x"], num_retries=9,
        extra_headers={"x-evil": "1"}, metadata={"a": 1}, caching=True,
    ))  # fmt: skip
    assert b"Hello" in await read_all(exchange, 10_000)
    head, body = upstream.requests[0].split(b"\r\n\r\n")
    assert b"x-evil" not in head
    assert set(json.loads(body)) == {"model", "messages", "max_tokens"}


async def test_a_path_that_has_no_translation(target):
    with pytest.raises(RequestUnsendable):
        await target.open(Call("/responses", b'{"model":"m"}', stream=False))


async def test_embeddings_go_the_same_way(upstream, wire):
    value = {"id": "e", "embeddings": {"float": [[0.5, 0.25]]}, "texts": ["hi"],
             "meta": {"billed_units": {"input_tokens": 3}}}  # fmt: skip
    upstream.script = lambda n: [wire.respond(json.dumps(value).encode())]
    target = LiteLLMBackend("cohere", Credentials(Secret(KEY)), base_url=upstream.url)
    body = json.dumps({"model": "embed-english-v3.0", "input": ["hi"]}).encode()
    exchange = await target.open(Call("/embeddings", body, stream=False))
    got = json.loads(await read_all(exchange, 10_000))
    assert got["data"][0]["embedding"] == [0.5, 0.25]
    assert got["usage"]["prompt_tokens"] == 3
    await target.aclose()


IMPORT = """
import socket, sys
tried = []
def wall(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.sendto"):
        tried.append((event, arguments))
        raise OSError("no network")
sys.addaudithook(wall)
import backends.litellm, backends.openai
assert "litellm" not in sys.modules, "imported before a target needs it"
try:
    socket.create_connection(("127.0.0.1", 9))
except OSError:
    pass
before = len(tried)
backends.litellm.load()
assert "litellm" in sys.modules
print(before, len(tried) - before)
"""


def test_importing_never_touches_the_network():
    root = Path(__file__).parents[2]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LITELLM")}
    done = subprocess.run(
        [sys.executable, "-c", IMPORT],
        cwd=root, env=environment, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    seen_by_the_wall, by_litellm = map(int, done.stdout.split())
    assert seen_by_the_wall > 0
    assert by_litellm == 0


@pytest.mark.parametrize("quiet", [True, False])
async def test_its_log_quotes_no_answer(upstream, wire, caplog, monkeypatch, quiet):
    target = LiteLLMBackend("ollama", Credentials(Secret(KEY)), base_url=upstream.url)
    upstream.script = lambda n: [wire.respond(b'{"error":{"message":"a canary"}}\n')]
    load()
    if not quiet:  # the control
        monkeypatch.setattr("backends.litellm._LOGGERS", ())
        for name in _LOGGERS:
            monkeypatch.setattr(logging.getLogger(name), "disabled", False)
    body = b'{"model":"m","stream":true,"messages":[{"role":"user","content":"x"}]}'
    with caplog.at_level(logging.DEBUG), suppress(BackendError):
        exchange = await target.open(Call("/chat/completions", body, stream=True))
        await read_all(exchange, 10_000, timeout_s=20)
    said = [
        record
        for record in caplog.records
        if record.name in _LOGGERS and "canary" in record.getMessage()
    ]
    assert bool(said) is not quiet


MARK = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
MARKED = {
    "messages": [{"role": "user", "content": [{"type": "text", "text": "a", **MARK}], **MARK}],
    "tools": [{"type": "function", "function": {"name": "f"}, **MARK}],
}


@pytest.mark.parametrize(
    ("prefix", "model", "keeps"),
    [
        ("gemini", "gemini-3-pro", False),
        ("vertex_ai", "gemini-3-pro", False),
        ("vertex_ai", "claude-sonnet-4-5", True),
        ("anthropic", "claude-sonnet-4-5", True),
        ("bedrock", "anthropic.claude-sonnet-4-5", True),
    ],
)
def test_a_cache_that_is_charged_by_the_hour_is_not_asked_for(prefix, model, keeps) -> None:
    litellm = SimpleNamespace(
        acompletion=1, atext_completion=2, aembedding=3,
        get_supported_openai_params=lambda *_: None, openai_compatible_providers=(),
    )  # fmt: skip
    body = json.dumps({"model": model, **MARKED}).encode()
    asked = Call("/chat/completions", body, False, deadlines=Deadlines(5, 30, 10))
    _, sent = LiteLLMBackend(prefix)._arguments.make(litellm, asked)
    assert ("cache_control" in json.dumps([sent["messages"], sent["tools"]])) is keeps
    assert sent["messages"][0]["content"][0]["text"] == "a"
    assert sent["tools"][0]["function"] == {"name": "f"}


@pytest.mark.parametrize("marked", [False, True])
async def test_a_document_of_a_conversation_reaches_anthropic(upstream, wire, target, marked):
    upstream.script = lambda n: [wire.respond(answer())]
    file = {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0xLjQK"}
    mark = {"cache_control": {"type": "ephemeral"}} if marked else {}
    turns = [{"role": "user", "content": [{"type": "file", "file": file, **mark}]}]
    await read_all(await target.open(call(messages=turns)), 10_000)
    sent = json.loads(upstream.requests[0].split(b"\r\n\r\n")[1])
    (block,) = sent["messages"][0]["content"]
    source = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjQK"}
    assert (block["type"], block["source"]) == ("document", source)
    assert ("cache_control" in block) is marked
