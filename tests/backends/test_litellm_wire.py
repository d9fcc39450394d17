"""Each wire format through the adapter: whole, streamed, tools, errors, ends, counts.

The formats are in `wire_shapes.py`. Who speaks chat goes by the own client, whose tests have these.
"""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from wire_shapes import ARGUMENTS, OUTPUT, PROMPT, SHAPES, TEXT, WireShape

from backends.base import Call, Deadlines
from backends.errors import BackendError, UpstreamBroken, UpstreamOverloaded
from backends.exchange import read_all
from backends.litellm import LiteLLMBackend, load
from backends.openai import Credentials
from backends.provider_refusals import NEEDS
from backends.secret import Secret
from backends.sending import EXTENSION

CASES = [
    pytest.param(shape, name, id=f"{key}-{name}")
    for key, shape in SHAPES.items()
    for name in shape.names
]
MODELS = {"ragflow": "chat/1/m", "huggingface": "meta/m"}
VARIABLES = {
    "AWS_ACCESS_KEY_ID": "AKIA", "AWS_SECRET_ACCESS_KEY": "s", "AWS_REGION": "us-east-1",
    "WATSONX_PROJECT_ID": "p", "WATSONX_TOKEN": "t", "VERTEXAI_PROJECT": "p",
    "VERTEXAI_LOCATION": "us-central1",
}  # fmt: skip
TOOL = {"name": "look", "description": "d",
        "parameters": {"type": "object", "properties": {"at": {"type": "integer"}}}}  # fmt: skip
# Neither says in a stream that is cut between two events that more was to come.
SAY_NO_END = {"sagemaker"}

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*Pydantic.*"),
]


class Halves(httpx.AsyncByteStream):
    def __init__(self, body: bytes, *, dies: bool) -> None:
        self.body, self.dies = body, dies

    async def __aiter__(self) -> AsyncIterator[bytes]:
        middle = len(self.body) // 2
        yield self.body[:middle]
        yield self.body[middle:]
        if self.dies:
            raise httpx.RemoteProtocolError("the peer closed the connection")


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch):
    litellm = load()
    for variable, value in VARIABLES.items():
        monkeypatch.setenv(variable, value)
    from litellm.llms.vertex_ai.vertex_llm_base import VertexBase  # noqa: PLC0415  (seconds)

    async def token(*_: Any, **__: Any) -> tuple[str, str]:
        return "token", "project"

    monkeypatch.setattr(VertexBase, "_ensure_access_token_async", token)
    nowhere = httpx.MockTransport(lambda _: httpx.Response(404, json={}))
    monkeypatch.setattr(litellm, "sync_transport", nowhere)
    litellm.in_memory_llm_clients_cache.flush_cache()

    async def ask(
        shape: WireShape, name: str, body: bytes, *, stream: bool = False, status: int = 200,
        dies: bool = False, kind: str | None = None, sent: list[Any] | None = None,
        said: Any = "hello",
    ) -> Any:  # fmt: skip
        """`sent`: takes the body that left, and what is said to be left out, of strict tools."""

        async def answer(request: httpx.Request) -> httpx.Response:
            if sent is not None:
                sent.append(request.content)
            request.extensions[EXTENSION].begun = True
            headers = {"content-type": kind or (shape.kind if stream else "application/json")}
            return httpx.Response(status, headers=headers, stream=Halves(body, dies=dies))

        needs = NEEDS.get(name)
        place = None if needs is None or needs.address is None else "http://provider.example/v1"
        proof = Credentials(Secret("sk-0123456789abcdef0123"))
        backend = LiteLLMBackend(name, proof, base_url=place)
        backend.adopt(litellm, httpx.MockTransport(answer))
        asked: dict[str, Any] = {
            "model": MODELS.get(name, shape.model), "max_tokens": 9,
            "messages": [{"role": "user", "content": said}],
        }  # fmt: skip
        if body and body in (shape.tool, shape.tool_stream):
            strict = {} if sent is None else {"strict": True}
            asked["tools"] = [{"type": "function", "function": {**TOOL, **strict}}]
        deadlines = Deadlines(head_s=20, idle_s=20)
        call = Call("/chat/completions", json.dumps(asked).encode(), stream, deadlines=deadlines)
        exchange = await backend.open(call)
        if sent is not None:
            sent.append(call.transmission.ignored)
        told = await read_all(exchange, 100_000)
        if exchange.status != 200:
            return exchange.status
        return streamed(told) if stream else whole(told)

    yield ask
    litellm.in_memory_llm_clients_cache.flush_cache()


def whole(body: bytes) -> tuple[Any, ...]:
    value = json.loads(body)
    message, usage = value["choices"][0]["message"], value.get("usage")
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    return (
        message.get("content") or "",
        [(call["name"], json.loads(call["arguments"])) for call in calls],
        value["choices"][0]["finish_reason"],
        usage,
    )


def streamed(body: bytes) -> tuple[Any, ...]:
    text, finish, usage = "", None, None
    calls: dict[int, list[str]] = {}
    events = [event for event in body.decode().split("\n\n") if event.startswith("data: {")]
    for value in map(json.loads, (event.removeprefix("data: ") for event in events)):
        usage = value.get("usage") or usage
        for choice in value["choices"]:
            delta = choice.get("delta") or {}
            text, finish = text + (delta.get("content") or ""), choice["finish_reason"] or finish
            for call in delta.get("tool_calls") or ():
                parts = calls.setdefault(call["index"], ["", ""])
                parts[0] += call["function"].get("name") or ""
                parts[1] += call["function"].get("arguments") or ""
    return text, [(name, json.loads(given)) for name, given in calls.values()], finish, usage


def check_counts(shape: WireShape, usage: Any, *, told: bool) -> None:
    """What was not told is no count; LiteLLM counts words itself."""
    if not told:
        assert usage is None
        return
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (PROMPT, OUTPUT)
    details = usage.get("prompt_tokens_details") or {}
    assert details.get("cached_tokens") == shape.cached


@pytest.mark.parametrize(("shape", "name"), CASES)
async def test_an_answer(target, shape: WireShape, name: str) -> None:
    *said, usage = await target(shape, name, shape.whole)
    assert said == [TEXT, [], "stop"]
    check_counts(shape, usage, told=shape.counts)
    *said, usage = await target(shape, name, shape.stream, stream=True)
    assert said == [TEXT, [], "stop"]
    check_counts(shape, usage, told=shape.counts_stream)


@pytest.mark.parametrize(("shape", "name"), [case for case in CASES if case.values[0].tool])
async def test_a_tools_call(target, shape: WireShape, name: str) -> None:
    for body, stream in ((shape.tool, False), (shape.tool_stream, True)):
        *said, usage = await target(shape, name, body, stream=stream)
        assert said == ["", [("look", ARGUMENTS)], "tool_calls"]
        check_counts(shape, usage, told=True)


@pytest.mark.parametrize(("shape", "name"), [case for case in CASES if case.values[0].tool])
async def test_that_calls_shall_fit_their_schema_is_told_or_named(target, shape, name) -> None:
    """Red before: it vanished at seven of these without a word."""
    for body, stream in ((shape.tool, False), (shape.tool_stream, True)):
        sent: list[Any] = []
        await target(shape, name, body, stream=stream, sent=sent)
        *bodies, ignored = sent
        assert (b'"strict"' in bodies[-1]) == ("tools.strict" not in ignored)


@pytest.mark.parametrize("name", ["anthropic", "gemini"])
async def test_a_sound_is_told_or_named(target, name: str) -> None:
    """Red before: to Claude it vanished without a word."""
    shape = next(case.values[0] for case in CASES if case.values[1] == name)
    sent: list[Any] = []
    data = "UklGRiQAAABXQVZF" * 40
    sound = {"type": "input_audio", "input_audio": {"data": data, "format": "wav"}}
    said = [{"type": "text", "text": "hello"}, sound]
    await target(shape, name, shape.whole, sent=sent, said=said)
    *bodies, ignored = sent
    left = () if data.encode() in bodies[-1] else ("messages.input_audio",)
    assert ignored == left == (() if name == "gemini" else ("messages.input_audio",))


@pytest.mark.parametrize(("shape", "name"), CASES)
async def test_a_failure_is_what_it_was(target, shape: WireShape, name: str) -> None:
    assert await target(shape, name, shape.error, status=401) == 401
    for stream in (False, True):
        with pytest.raises(UpstreamOverloaded) as failure:
            await target(shape, name, shape.error, stream=stream, status=429)
        assert not failure.value.billable
        with pytest.raises(BackendError) as failure:
            await target(shape, name, shape.error, stream=stream, status=500)
        assert failure.value.status == 500
        assert failure.value.billable
    with pytest.raises(BackendError):  # an error where events were asked for
        await target(shape, name, shape.error, stream=True, kind="application/json")


@pytest.mark.parametrize(("shape", "name"), CASES)
async def test_half_an_answer_is_none(target, shape: WireShape, name: str) -> None:
    """Whether the connection dies or ends as if nothing was amiss."""
    half = shape.stream[: len(shape.stream) * 2 // 5]
    for dies in (True, False) if name not in SAY_NO_END else (True,):
        with pytest.raises(UpstreamBroken):
            await target(shape, name, half, stream=True, dies=dies)


async def test_two_calls_of_tools_keep_apart(target) -> None:
    """Cohere's come at one place, by their ids."""
    shape, more = SHAPES["cohere"], []
    for kind, call in (
        ("tool-call-start", {"id": "t2", "function": {"name": "see", "arguments": ""}}),
        ("tool-call-delta", {"function": {"arguments": "{}"}}),
    ):
        event = {"type": kind, "index": 1, "delta": {"message": {"tool_calls": call}}}
        more.append(b"data: " + json.dumps(event).encode() + b"\n\n")
    last = b"event: message-end"
    both = shape.tool_stream.replace(last, b"".join(more) + last)
    _, calls, finish, _ = await target(shape, "cohere", both, stream=True)
    assert (calls, finish) == ([("look", ARGUMENTS), ("see", {})], "tool_calls")
