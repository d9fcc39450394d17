"""What LiteLLM fails at before it sends anything is free, for each kind of client that it has."""

import asyncio
import json

import pytest

from backends.base import Call, Deadlines
from backends.chunks import parse_answer
from backends.errors import (
    BackendError,
    RequestDeclined,
    StreamError,
    UpstreamBroken,
    UpstreamOverloaded,
    UpstreamRejected,
    UpstreamUnreachable,
)
from backends.exchange import read_all
from backends.litellm import LiteLLMBackend
from backends.openai import Credentials
from backends.secret import Secret

pytestmark = [
    # LiteLLM's own, on import and in its background worker; nothing of ours.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*Pydantic.*"),
]

# Its own handlers, given and kept ones; OpenAI's SDK; one that blocks a thread; AWS's signature.
PREFIXES = ["anthropic", "gemini", "cohere", "ollama", "perplexity", "openai", "petals", "bedrock"]
MODELS = {"bedrock": "anthropic.claude-3-sonnet-20240229-v1:0"}
KEY = "sk-0123456789abcdef"
EVENTS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.fixture(autouse=True)
def accounts(monkeypatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "a")
    monkeypatch.setenv("AWS_REGION_NAME", "us-east-1")


@pytest.fixture
async def of():
    """`of(prefix, url)`: a backend that is closed at the end."""
    made: list[LiteLLMBackend] = []

    def make(prefix: str, url: str | None, key: str | None = KEY) -> LiteLLMBackend:
        credentials = Credentials(None if key is None else Secret(key))
        backend = LiteLLMBackend(prefix, credentials, base_url=url)
        made.append(backend)
        return backend

    yield make
    for backend in made:
        await backend.aclose()


def call(
    prefix: str = "", *, stream: bool = False, path: str = "/chat/completions", **more
) -> Call:
    body = {
        "model": MODELS.get(prefix, "m"),
        "messages": [{"role": "user", "content": "hi"}],
        **more,
    }
    return Call(path, json.dumps(body).encode(), stream, deadlines=Deadlines(5, 30, 10))


async def outcome(backend: LiteLLMBackend, asked: Call) -> BackendError | int:
    try:
        exchange = await backend.open(asked)
        await read_all(exchange, 100_000)
    except BackendError as error:
        return error
    return exchange.status


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("prefix", PREFIXES)
async def test_nobody_listens(of, free_port, prefix, stream) -> None:
    asked = call(prefix, stream=stream)
    error = await outcome(of(prefix, f"http://127.0.0.1:{free_port}"), asked)
    assert isinstance(error, BackendError)
    assert isinstance(error, UpstreamUnreachable)
    assert (asked.transmission.begun, error.billable) == (False, False)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("prefix", PREFIXES)
async def test_what_arrived_may_be_charged(of, upstream, wire, prefix, stream) -> None:
    upstream.script = lambda n: [wire.CLOSE]
    asked = call(prefix, stream=stream)
    error = await outcome(of(prefix, upstream.url), asked)
    assert upstream.requests
    assert (asked.transmission.begun, error.billable) == (True, True)


BROKEN = [
    b"", b"HTTP/1.1 2", b"HTTP/1.1 200 OK\r\n\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 500\r\n\r\n{",
    EVENTS, EVENTS + b"5\r\ndata:",
]  # fmt: skip


@pytest.mark.parametrize("answer", BROKEN)
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("prefix", PREFIXES)
async def test_no_request_leaves_twice(of, upstream, wire, prefix, stream, answer) -> None:
    """Red before: LiteLLM's handlers send again what broke off, and one of two was booked."""
    upstream.script = lambda number: [answer, wire.CLOSE]
    await outcome(of(prefix, upstream.url), call(prefix, stream=stream))
    assert len(upstream.requests) == 1


@pytest.mark.parametrize(
    ("prefix", "url", "asked"),
    [
        ("perplexity", "http://localhost:bad", call()),
        ("anthropic", "ftp://localhost", call()),
        ("anthropic", "http://no-such-name.invalid", call()),
        ("anthropic", "http://169.254.169.254", call()),
        ("openai", "http://169.254.169.254", call()),
        ("nonsense", None, call()),
        ("anthropic", None, call(messages=[{"role": 7}])),
        ("anthropic", None, call(messages="no list")),
        ("openai", None, call(path="/responses")),
        ("oci", None, call()),
        ("vertex_ai", None, call()),
        ("anthropic", None, Call("/chat/completions", b"{}", stream=False)),
        ("anthropic", None, Call("/chat/completions", b"{half", stream=False)),
    ],
)
async def test_what_fails_on_our_side_is_free(of, monkeypatch, prefix, url, asked) -> None:
    """An address that leads nowhere, a provider or a request that LiteLLM cannot make one of."""
    monkeypatch.setattr("backends.pinned.resolve_addresses", resolved_inside)
    error = await outcome(of(prefix, url), asked)
    assert asked.transmission.begun is False
    if isinstance(error, BackendError):
        assert not error.billable
    else:
        assert 400 <= error < 500, "told as a refusal, which is free"


async def test_what_litellm_refuses_by_itself_is_no_word_of_the_target(of, upstream) -> None:
    """Another target's API may have a form for it."""
    tool = {"type": "function", "function": {"name": "f"}}
    asked = call(tools=[tool], tool_choice={"type": "allowed_tools", "allowed_tools": {}})
    error = await outcome(of("openai", upstream.url), asked)
    assert isinstance(error, RequestDeclined)
    assert (error.status, error.sent, error.billable) == (400, False, False)
    assert b"tool" in error.body
    assert not upstream.requests


async def resolved_inside(host: str, port: int, reach: object) -> list[str]:
    raise OSError(f"{host} leads nowhere")


async def test_a_deadline_before_a_connection_is_no_answer_of_the_providers(
    of, upstream, monkeypatch
) -> None:
    async def never(*_: object) -> list[str]:
        await asyncio.Event().wait()
        return []

    monkeypatch.setattr("backends.pinned.resolve_addresses", never)
    backend = of("anthropic", upstream.url)
    await backend.start()
    asked = Call("/chat/completions", call().body, stream=False, deadlines=Deadlines(5, 0.3, 10))
    error = await outcome(backend, asked)
    assert isinstance(error, UpstreamUnreachable)
    assert (upstream.requests, error.billable) == ([], False)


@pytest.mark.parametrize("key", [KEY, None])
async def test_a_provider_behind_the_sdk_answers(of, upstream, wire, key) -> None:
    """Its handler took no client of ours, and each call of it failed."""
    answer = {
        "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"},
                     "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
    }  # fmt: skip
    upstream.script = lambda n: [wire.respond(json.dumps(answer).encode())]
    exchange = await of("perplexity", upstream.url, key).open(call())
    told = json.loads(await read_all(exchange, 100_000))
    assert told["choices"][0]["message"]["content"] == "hi"
    assert told["usage"]["prompt_tokens"] == 5


async def test_the_sdk_follows_no_redirect_and_is_aborted_with_its_client(
    of, upstream, wire
) -> None:
    moved = wire.respond(b"", "302 Found", f"location: {upstream.url}/elsewhere\r\n")
    upstream.script = lambda n: [moved] if n == 1 else [wire.HANG]
    backend = of("openai", upstream.url)
    assert isinstance(await outcome(backend, call()), BackendError)
    assert len(upstream.requests) == 1
    task = asyncio.create_task(backend.open(call(stream=True)))
    await upstream.until(lambda: len(upstream.requests) == 2)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await upstream.until(lambda: upstream.gone_at)


def event(value: object, name: str | None = None) -> bytes:
    head = "" if name is None else f"event: {name}\n"
    return f"{head}data: {json.dumps(value)}\n\n".encode()


def anthropic(kind: str) -> bytes:
    return event({"type": "error", "error": {"type": kind, "message": "m"}}, "error")


def google(code: int, status: str) -> bytes:
    return event({"error": {"code": code, "message": "m", "status": status}})


REPORTED = [
    ("anthropic", anthropic("overloaded_error"), UpstreamOverloaded),
    ("anthropic", anthropic("rate_limit_error"), UpstreamOverloaded),
    ("anthropic", anthropic("api_error"), StreamError),
    ("anthropic", anthropic("authentication_error"), UpstreamRejected),
    ("anthropic", anthropic("invalid_request_error"), RequestDeclined),
    ("gemini", google(429, "RESOURCE_EXHAUSTED"), UpstreamOverloaded),
    ("gemini", google(503, "UNAVAILABLE"), UpstreamOverloaded),
    ("perplexity", event({"error": {"code": 429, "message": "m"}}), UpstreamOverloaded),
    ("openai", event({"error": {"code": "insufficient_quota"}}), UpstreamRejected),
]


@pytest.mark.parametrize(("prefix", "said", "kind"), REPORTED)
async def test_an_error_in_a_stream_is_judged_by_what_it_says(
    of, upstream, wire, prefix, said, kind
) -> None:
    upstream.script = lambda n: [EVENTS, wire.chunked(said)]
    error = await outcome(of(prefix, upstream.url), call(stream=True))
    assert isinstance(error, kind)
    assert not error.billable


async def test_an_error_behind_words_breaks_the_answer_off(of, upstream, wire) -> None:
    message = {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "x",
               "stop_reason": None, "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
    words = b"".join(
        event(value, value["type"])
        for value in (
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0,
             "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0,
             "delta": {"type": "text_delta", "text": "so"}},
        )
    )  # fmt: skip
    upstream.script = lambda n: [EVENTS, wire.chunked(words, anthropic("overloaded_error"))]
    error = await outcome(of("anthropic", upstream.url), call(stream=True))
    assert isinstance(error, UpstreamBroken)
    assert error.billable


FAILED = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [
    {"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": "error",
     "error": {"code": 502, "message": "m"}}]}  # fmt: skip


@pytest.mark.parametrize(
    ("prefix", "said", "kind"),
    [
        ("perplexity", FAILED, StreamError),
        ("anthropic", {"type": "error", "error": {"type": "overloaded_error"}}, UpstreamOverloaded),
        ("gemini", {"error": {"code": 429, "status": "RESOURCE_EXHAUSTED"}}, UpstreamOverloaded),
    ],
)
async def test_an_error_in_one_piece_is_judged_by_what_it_says(
    of, upstream, wire, prefix, said, kind
) -> None:
    """LiteLLM makes an answer without words of some: then its own body is what is read."""
    upstream.script = lambda n: [wire.respond(json.dumps(said).encode())]
    error = await answered(of(prefix, upstream.url), call())
    assert isinstance(error, kind)
    assert not error.billable


async def answered(backend: LiteLLMBackend, asked: Call) -> BackendError | None:
    try:
        exchange = await backend.open(asked)
        parse_answer(await read_all(exchange, 100_000))
    except BackendError as error:
        return error
    return None
