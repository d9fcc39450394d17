"""Usage of LiteLLM's streams: the provider's alone, wherever it stands, and never LiteLLM's own."""

import json
from types import SimpleNamespace
from typing import Any

import pytest

from backends.base import Call, Deadlines
from backends.errors import InvalidResponse
from backends.exchange import read_all
from backends.litellm import LiteLLMBackend
from backends.litellm_usage import (
    begun_usage,
    billed_usage,
    provider_usage,
    running_usage,
    usage_in_events,
)
from backends.openai import Credentials
from backends.secret import Secret
from ledger.cache_conventions import Convention
from ledger.journals.token_kinds import TokenCounts
from ledger.stated_costs import stated_cost
from ledger.usage import tokens_from_usage

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
USAGE = {"prompt_tokens": 10, "completion_tokens": 80, "total_tokens": 90}

pytestmark = [
    # LiteLLM's own, on import and in its background worker; nothing of ours.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*Pydantic.*"),
]


def chunk(*choices: dict[str, Any], **more: Any) -> bytes:
    value = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return f"data: {json.dumps(value | {'choices': list(choices)} | more)}\n\n".encode()


def choice(text: str | None = None, index: int = 0, **more: Any) -> dict[str, Any]:
    return {"index": index, "delta": {} if text is None else {"content": text}, **more}


END = choice(finish_reason="stop")
SEARCHED = {
    **USAGE, "total_tokens": 790, "completion_tokens_details": {"reasoning_tokens": 700},
    "num_sources_used": 4,
}  # fmt: skip
CITED = {**USAGE, "citation_tokens": 7000, "num_search_queries": 18, "reasoning_tokens": 73_000}
CACHED = {**USAGE, "cached_tokens": 9}
TOLD = [
    # Nothing told is nothing: LiteLLM counts words by its own tokenizer.
    ("openai", [chunk(END)], None),
    ("groq", [chunk(END)], None),
    ("deepseek", [chunk(END)], None),
    # Told in places that LiteLLM does not read.
    ("groq", [chunk(END, x_groq={"id": "r", "usage": USAGE})], USAGE),
    ("moonshot", [chunk(choice(finish_reason="stop", usage=USAGE))], USAGE),
    # Members that LiteLLM's sum of a stream leaves out, and a total that it counts anew.
    ("xai", [chunk(END), chunk(usage=SEARCHED)], SEARCHED),
    ("perplexity", [chunk(END), chunk(usage=CITED)], CITED),
    ("moonshot", [chunk(END), chunk(usage=CACHED)], CACHED),
    # Told where it does.
    ("openai", [chunk(END), chunk(usage=USAGE)], USAGE),
    ("mistral", [chunk(choice("", finish_reason="stop"), usage=USAGE)], USAGE),
]


@pytest.mark.parametrize(("prefix", "last", "told"), TOLD)
async def test_only_what_the_provider_told_is_usage(upstream, wire, prefix, last, told) -> None:
    sent = [chunk(choice("word ")) for _ in range(3)] + last + [b"data: [DONE]\n\n"]
    upstream.script = lambda n: [HEAD, wire.chunked(*sent)]
    backend = LiteLLMBackend(prefix, Credentials(Secret("sk-none")), base_url=upstream.url)
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    asked = Call(
        "/chat/completions", json.dumps(body).encode(), stream=True, deadlines=Deadlines(5, 30, 10)
    )
    answer = (await read_all(await backend.open(asked), 100_000)).decode()
    await backend.aclose()
    events = [json.loads(part[6:]) for part in answer.split("\n\n")[:-2]]
    assert "".join(c["delta"].get("content") or "" for e in events for c in e["choices"]) == (
        "word " * 3
    )
    usages = [event["usage"] for event in events if "usage" in event]
    if told is None:
        assert usages == []
    else:
        assert [{name: usages[0].get(name) for name in told}, len(usages)] == [told, 1]
        assert "cost" not in usages[0]


WORD = chunk(choice("word " * 400))
GROWN = {**USAGE, "completion_tokens": 90, "total_tokens": 100}
EARLY = [
    ([chunk(usage=USAGE), WORD, chunk(END)], None),
    ([chunk(choice("word "), usage=USAGE), *[WORD] * 12, chunk(END)], None),
    ([chunk(usage=USAGE), WORD, chunk(END, usage=GROWN)], GROWN),
    ([chunk(usage=USAGE), chunk(choice("word "), usage=GROWN), chunk(END)], GROWN),
    ([WORD, chunk(choice("word ", finish_reason="stop"), usage=USAGE)], USAGE),
]


@pytest.mark.parametrize(("sent", "told"), EARLY)
@pytest.mark.parametrize("apart", [False, True])
async def test_usage_that_words_come_behind_is_not_of_all(
    upstream, wire, sent, told, apart
) -> None:
    """Red before: LiteLLM's sum of a stream has it, and so it was the last word."""
    whole = [*sent, b"data: [DONE]\n\n"]
    upstream.script = lambda n: [HEAD, wire.chunked(*(whole if apart else [b"".join(whole)]))]
    backend = LiteLLMBackend("openrouter", Credentials(Secret("sk-none")), base_url=upstream.url)
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
    asked = Call(
        "/chat/completions", json.dumps(body).encode(), stream=True, deadlines=Deadlines(5, 30, 10)
    )
    answer = (await read_all(await backend.open(asked), 100_000)).decode()
    await backend.aclose()
    events = [json.loads(part[6:]) for part in answer.split("\n\n")[:-2]]
    last = [event["usage"] for event in events if not event["choices"]]
    assert [{name: usage[name] for name in USAGE} for usage in last] == ([told] if told else [])


def kept(*usages: dict[str, Any] | None) -> Any:
    return SimpleNamespace(chunks=[SimpleNamespace(usage=usage) for usage in usages])


def test_a_total_that_no_chunk_has_is_made_up() -> None:
    """LiteLLM takes a first figure of Anthropic's for none, and counts words."""
    stream = SimpleNamespace(completion_stream=kept(None, {**USAGE, "completion_tokens": 1}))
    assert provider_usage(USAGE, stream, b"") is None
    assert provider_usage(USAGE, kept(None, USAGE), b"") == USAGE, "control"
    assert provider_usage(None, kept(None), b"") is None
    assert provider_usage(USAGE, SimpleNamespace(), b"") == USAGE, "no wrapper: the chunks' own"


def test_thoughts_that_no_chunk_counted_are_not_told() -> None:
    thought = {**USAGE, "completion_tokens_details": {"reasoning_tokens": 7}}
    assert provider_usage(thought, kept(USAGE), b"") == USAGE
    assert provider_usage(thought, kept(USAGE, thought), b"") == thought


GEMINI = {
    "promptTokenCount": 1000, "candidatesTokenCount": 50, "toolUsePromptTokenCount": 3000,
    "totalTokenCount": 4050,
}  # fmt: skip


@pytest.mark.parametrize("stream", [False, True])
async def test_what_gemini_searched_and_read_is_told_and_no_cost_of_litellms(
    upstream, wire, stream: bool
) -> None:
    """Red before: LiteLLM's own list stated a cost, its sum a total without what tools read."""
    said = {
        "content": {"parts": [{"text": "word "}], "role": "model"}, "finishReason": "STOP",
        "groundingMetadata": {"webSearchQueries": ["a", "b", "c"], "groundingChunks": []},
    }  # fmt: skip
    document = json.dumps({"candidates": [said], "usageMetadata": GEMINI, "responseId": "r"})
    head, body = HEAD, f"data: {document}\n\n" if stream else document
    if not stream:
        head = HEAD.replace(b"text/event-stream", b"application/json")
    upstream.script = lambda n: [head, wire.chunked(body.encode())]
    backend = LiteLLMBackend("gemini", Credentials(Secret("sk-none")), base_url=upstream.url)
    asked = {"model": "gemini-2.5-pro", "messages": [{"role": "user", "content": "hi"}]}
    call = Call(
        "/chat/completions", json.dumps(asked).encode(), stream, deadlines=Deadlines(5, 30, 10)
    )
    answer = (await read_all(await backend.open(call), 100_000)).decode()
    await backend.aclose()
    documents = [part.removeprefix("data: ") for part in answer.split("\n\n") if "{" in part]
    usage = json.loads(documents[-1])["usage"]
    tokens = tokens_from_usage(usage, Convention.CACHED_INSIDE)
    assert tokens == TokenCounts(input=4000, output=50, searches=3)
    assert stated_cost(usage) is None


async def test_what_gemini_told_before_its_client_left_is_told(upstream, wire) -> None:
    """Red before: thoughts that stood beside the first words were told at the end alone."""
    said = {"content": {"parts": [{"text": "word "}], "role": "model"}}
    counts = {"promptTokenCount": 1000, "candidatesTokenCount": 1, "thoughtsTokenCount": 700}
    document = {"candidates": [said], "usageMetadata": {**counts, "totalTokenCount": 1701}}
    event = wire.chunked(f"data: {json.dumps(document)}\n\n".encode(), end=b"")
    upstream.script = lambda n: [HEAD, event, 30.0]
    backend = LiteLLMBackend("gemini", Credentials(Secret("sk-none")), base_url=upstream.url)
    asked = {"model": "gemini-2.5-pro", "messages": [{"role": "user", "content": "hi"}]}
    data = json.dumps(asked).encode()
    exchange = await backend.open(
        Call("/chat/completions", data, stream=True, deadlines=Deadlines(5, 30, 10))
    )
    first = await anext(aiter(exchange))
    await exchange.aclose()
    await backend.aclose()
    usage = json.loads(first.removeprefix(b"data: "))["usage"]
    tokens = tokens_from_usage(usage, Convention.CACHED_INSIDE)
    assert tokens == TokenCounts(input=1000, output=701, reasoning=700)


async def test_the_prompt_that_claude_counted_before_its_client_left_is_told(
    upstream, wire
) -> None:
    """Red before: who left was booked at an estimate of it."""
    usage = {"input_tokens": 4500, "cache_read_input_tokens": 300, "output_tokens": 7}
    begins = {
        "id": "a", "type": "message", "role": "assistant", "model": "m", "content": [],
        "stop_reason": None, "stop_sequence": None, "usage": usage,
    }  # fmt: skip
    text = {"type": "text_delta", "text": "word "}
    told = [
        {"type": "message_start", "message": begins},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": text},
    ]
    events = "".join(f"event: {item['type']}\ndata: {json.dumps(item)}\n\n" for item in told)
    upstream.script = lambda n: [HEAD, wire.chunked(events.encode(), end=b""), 30.0]
    backend = LiteLLMBackend("anthropic", Credentials(Secret("sk-none")), base_url=upstream.url)
    asked = {"model": "claude-x", "messages": [{"role": "user", "content": "hi"}]}
    exchange = await backend.open(
        Call("/chat/completions", json.dumps(asked).encode(), stream=True,
             deadlines=Deadlines(5, 30, 10))
    )  # fmt: skip
    first = await anext(aiter(exchange))
    await exchange.aclose()
    await backend.aclose()
    usage = json.loads(first.removeprefix(b"data: "))["usage"]
    tokens = tokens_from_usage(usage, Convention.CACHED_INSIDE)
    assert tokens == TokenCounts(input=4500, cached=300, output=0)


def test_a_beginning_that_counts_nothing_tells_nothing() -> None:
    for message in ({}, {"usage": {}}, {"usage": [1]}, None, {"usage": None}):
        told = {"type": "message_start", "message": message}
        assert begun_usage(f"data: {json.dumps(told)}\n\n".encode()) is None
    quoted = chunk(choice('"message_start"'))
    assert begun_usage(quoted) is None
    assert begun_usage(b"") is None


def test_running_usage_is_the_last_events_own() -> None:
    words, told = chunk(choice("word ")), chunk(choice("word "), usage=SEARCHED)
    assert running_usage(kept(USAGE), words + told) == SEARCHED
    assert running_usage(kept(None), told + words) is None
    assert running_usage(kept(USAGE), chunk(choice("word "), usage={"prompt_tokens": 5})) is None


async def test_an_answer_that_litellm_cannot_read_is_charged_by_its_usage(upstream, wire) -> None:
    """Red before: it was booked at its bound. Its handler for Groq wants a tier."""
    message = {"index": 0, "message": {"content": "word"}, "finish_reason": "stop"}
    document = json.dumps({"id": "c", "choices": [message], "usage": USAGE}).encode()
    head = HEAD.replace(b"text/event-stream", b"application/json")
    upstream.script = lambda n: [head, wire.chunked(document)]
    backend = LiteLLMBackend("groq", Credentials(Secret("sk-none")), base_url=upstream.url)
    data = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
    with pytest.raises(InvalidResponse) as failed:
        await backend.open(
            Call("/chat/completions", data, stream=False, deadlines=Deadlines(5, 30, 10))
        )
    await backend.aclose()
    assert failed.value.usage == USAGE


async def test_cohere_is_booked_by_what_it_bills(upstream, wire) -> None:
    """Red before: what its template takes was told, five hundred tokens of ten."""
    units = {"billed_units": {"input_tokens": 10.0, "output_tokens": 5}}
    usage = {**units, "tokens": {"input_tokens": 500, "output_tokens": 7}}
    text = 'mind "billed_units": {"input_tokens": 1}'
    message = {"role": "assistant", "content": [{"type": "text", "text": text}]}
    document = json.dumps({"id": "c", "message": message, "usage": usage})
    head = HEAD.replace(b"text/event-stream", b"application/json")
    upstream.script = lambda n: [head, wire.chunked(document.encode())]
    backend = LiteLLMBackend("cohere_chat", Credentials(Secret("sk-none")), base_url=upstream.url)
    asked = {"model": "command-r-08-2024", "messages": [{"role": "user", "content": "hi"}]}
    data = json.dumps(asked).encode()
    call = Call("/chat/completions", data, stream=False, deadlines=Deadlines(5, 30, 10))
    answer = json.loads(await read_all(await backend.open(call), 100_000))
    await backend.aclose()
    told = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    assert {name: answer["usage"][name] for name in told} == told
    assert billed_usage(USAGE, b'{"billed_units": {"search_units": 1}}') == USAGE


def test_the_last_bytes_may_begin_within_an_event() -> None:
    first = chunk(choice(usage=USAGE), choice(index=1, usage={**USAGE, "completion_tokens": 2}))
    told = usage_in_events(b'ken"}}]}\n\n' + first + b"data: [DONE]\n\n")
    assert told == {"prompt_tokens": 10, "completion_tokens": 82, "total_tokens": 170}
    assert usage_in_events(first[10:]) is None
    assert (
        usage_in_events(b'data: {"type":"message_delta","usage":{"output_tokens":1}}\n\n') is None
    )


WHOLE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
STRANGE = {**USAGE, "prompt_tokens_details": {"cached_tokens": 3, "cache_creation_tokens": 5}}
LONG = 9000  # words: more than is kept of a stream


async def asked_whole(upstream: Any, prefix: str, answer: dict[str, Any]) -> Any:
    body = json.dumps(answer).encode()
    upstream.script = lambda n: [WHOLE % len(body) + body]
    backend = LiteLLMBackend(prefix, Credentials(Secret("sk-none")), base_url=upstream.url)
    messages = [{"role": "user", "content": "hi"}]
    asked = Call(
        "/chat/completions", json.dumps({"model": "m", "messages": messages}).encode(),
        stream=False, deadlines=Deadlines(5, 30, 10),
    )  # fmt: skip
    told = json.loads(await read_all(await backend.open(asked), 10**6))
    await backend.aclose()
    return told.get("usage")


@pytest.mark.parametrize("words", [3, LONG])
@pytest.mark.parametrize("usage", [USAGE, CITED, SEARCHED, CACHED, STRANGE, None])
async def test_usage_of_an_answer_in_one_piece_is_the_providers_own(upstream, usage, words) -> None:
    """Red before: thoughts beside the completion stood inside, and unknown details were away."""
    said = {"index": 0, "message": {"role": "assistant", "content": "word " * words}}
    answer = {"usage": usage, "id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    answer["choices"] = [{**said, "finish_reason": "stop"}]
    assert await asked_whole(upstream, "openrouter", answer) == usage


@pytest.mark.parametrize("words", [3, LONG])
@pytest.mark.parametrize("counted", [False, True])
async def test_a_long_answer_without_counts_has_no_usage(upstream, words, counted) -> None:
    """Red before: LiteLLM's own count of words was believed above 16 KB."""
    said = {"role": "assistant", "content": 'tokens": ' * words}
    answer = {"model": "m", "created_at": "2026-11-28T00:00:00Z", "message": said, "done": True}
    if counted:
        answer = {"prompt_eval_count": 10, "eval_count": 80, **answer}
    usage = await asked_whole(upstream, "ollama_chat", answer)
    if counted:
        assert (usage["prompt_tokens"], usage["completion_tokens"]) == (10, 80)
    else:
        assert usage is None
