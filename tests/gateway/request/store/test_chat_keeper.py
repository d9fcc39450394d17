"""One chat completion on its way out: stored with its last byte, or said not to be."""

import json
from types import SimpleNamespace

import pytest

from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.kinds.chat import read_chat
from gateway.request.dialects.chat import tokens_of
from gateway.request.store.chat_keeper import ChatKeeper, without_store
from ledger.journals.records import TokenCounts
from router.types import Feature, Residency

START = {"type": "http.response.start", "status": 200, "headers": []}
WHOLE = json.dumps({"id": "c1", "choices": [], "model": "m"}).encode()


class Reply:
    attempt: SimpleNamespace | None = None
    cache_use: SimpleNamespace | None = None
    broken = False
    residency = Residency.INTERNAL_ONLY

    def __init__(self, request_id: str = "req_1") -> None:
        self.request_id = request_id


def ask(**members):
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "store": True, **members}
    return read_chat(decode_members(json.dumps(body).encode()), max_n=1, session=None)


def body(data: bytes, *, more: bool = False) -> dict:
    return {"type": "http.response.body", "body": data, "more_body": more}


@pytest.fixture
def send():
    """`send(store, asked, message, ...)`: what the client gets of these."""

    async def work(store, asked, *messages, reply=None):
        sent = []

        async def take(message) -> None:
            sent.append(message)

        sending = ChatKeeper(store, asked, reply or Reply(), "a").wrap(take)
        for message in messages:
            await sending(dict(message))
        return sent

    return work


async def test_a_whole_completion_is_stored_with_what_it_was_asked(open_store, send) -> None:
    store = open_store()
    sent = await send(store, ask(metadata={"a": "b"}), START, body(WHOLE))
    assert sent[0] == START
    assert json.loads(sent[1]["body"]) == {**json.loads(WHOLE), "id": "chatcmpl-1"}
    found = await store.find("a", "chatcmpl-1")
    assert found is not None
    assert (found.kind, found.residency) == ("chat", "internal_only")
    assert found.content["completion"]["metadata"] == {"a": "b"}
    assert found.content["messages"] == [{"role": "user", "content": "hi"}]


async def test_a_stream_flows_and_is_stored_at_its_end(open_store, send) -> None:
    store = open_store()
    event = b'data: {"id":"c2","choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
    sent = await send(
        store, ask(stream=True), START, body(event, more=True), body(b"data: [DONE]\n\n")
    )
    told = event.replace(b"c2", b"chatcmpl-1")
    assert [message.get("body") for message in sent] == [None, told, b"data: [DONE]\n\n"]
    assert await store.find("a", "chatcmpl-1") is not None


@pytest.mark.parametrize("cached", [True, False])
@pytest.mark.parametrize("told", [None, {"prompt_tokens": 9, "total_tokens": 9}])
@pytest.mark.parametrize("stream", [True, False])
async def test_usage_that_was_not_sent_is_stored(open_store, send, stream, told, cached) -> None:
    """A stream tells its usage only where `include_usage` asks for it."""
    store, reply = open_store(), Reply()
    tokens = TokenCounts(input=5, cached=2, output=4, reasoning=1)
    if cached:
        reply.cache_use = SimpleNamespace(tokens=tokens)
    else:
        reply.attempt = SimpleNamespace(booked=tokens)
    choice = {"index": 0, "delta" if stream else "message": {"content": "x"}}
    answer = {"id": "c", "choices": [choice], **({"usage": told} if told else {})}
    text = json.dumps(answer).encode()
    text = b"data: %b\n\ndata: [DONE]\n\n" % text if stream else text
    await send(store, ask(stream=stream), START, body(text), reply=reply)
    found = await store.find("a", "chatcmpl-1")
    assert found is not None
    usage = found.content["completion"]["usage"]
    if told is not None:
        assert usage == told, "the target's own words"
        return
    assert tokens_of(usage) == tokens
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (7, 4, 11)


@pytest.mark.parametrize(
    ("data", "why"), [(b"x" * 3000, b"too_large"), (b"{}", b"unreadable"), (b"?", b"unreadable")]
)
async def test_what_is_not_stored_says_so(open_store, send, data: bytes, why: bytes) -> None:
    sent = await send(open_store(object_bytes=2000), ask(), START, body(data))
    assert sent[0]["headers"] == [(b"x-breakeven-not-stored", why)]
    assert sent[1]["body"] == data


async def test_failures_are_not_stored(open_store, send, tmp_path) -> None:
    refused = await send(open_store(), ask(), {**START, "status": 400}, body(WHOLE))
    assert refused[0]["headers"] == []
    broken = Reply()
    broken.broken = True
    await send(open_store(), ask(), START, body(WHOLE), reply=broken)
    assert not (tmp_path / "stored.sqlite3").exists()


def test_the_target_is_not_asked_to_store() -> None:
    asked = ask(metadata={"a": "b"})
    assert Feature.STORE in asked.features
    bare = without_store(asked)
    assert bare.members.keys() == {"model", "messages"}
    assert bare.features == asked.features - {Feature.STORE}


async def test_an_id_that_a_target_repeats_loses_no_answer(open_store, send) -> None:
    """Red before: the second was not kept, and a stream said nothing."""
    store = open_store()
    whole = b'{"id":"same","choices":[],"x": 1.50}'
    event = b'data: {"id":"same","choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
    for number in range(4):
        reply, stream = Reply(f"req_{number}"), number % 2 == 1
        # An event that comes in two parts is told once it is whole.
        bodies = (
            [body(event[:30], more=True), body(event[30:], more=True), body(b"data: [DONE]\n\n")]
            if stream
            else [body(whole[:9], more=True), body(whole[9:])]
        )
        size = str(len(whole)).encode()
        head = START if stream else {**START, "headers": [(b"content-length", size)]}
        sent = await send(store, ask(stream=stream), head, *bodies, reply=reply)
        assert len(sent) == (3 if stream else 2)
        name = f"chatcmpl-{number}"
        assert f'"id":"{name}"'.encode() in sent[1]["body"]
        assert b"same" not in sent[1]["body"]
        if not stream:
            assert b"1.50" in sent[1]["body"]
            size = str(len(sent[1]["body"])).encode()
            assert sent[0]["headers"] == [(b"content-length", size)]
        found = await store.find("a", name)
        assert found is not None
        assert found.content["completion"]["id"] == name


async def test_an_answer_that_is_sent_once_more_is_the_first_ones(open_store, send) -> None:
    store = open_store()
    first = {
        **START,
        "headers": [(b"x-request-id", b"req_first"), (b"idempotent-replayed", b"true")],
    }
    sent = await send(store, ask(), first, body(WHOLE), reply=Reply("req_second"))
    assert json.loads(sent[1]["body"])["id"] == "chatcmpl-first"
    assert sent[0]["headers"] == first["headers"]
    assert await store.find("a", "chatcmpl-first") is None, "it was stored then, or deleted since"


@pytest.mark.parametrize("size", [100, 3000])
async def test_a_stream_that_is_not_stored_says_so_in_its_last_chunk(
    open_store, send, size
) -> None:
    """Red before: its head had left, and nothing of it said so."""
    text = b'"' + b"x" * size + b'"'
    event = b'data: {"id":"c","choices":[{"index":0,"delta":{"content":%s}}]}\n\n' % text
    bodies = [body(event, more=True), body(event, more=True), body(b"data: [DONE]\n\n")]
    sent = await send(open_store(object_bytes=2000), ask(stream=True), START, *bodies)
    told = b"".join(message.get("body", b"") for message in sent)
    chunks = [json.loads(part[6:]) for part in told.split(b"\n\n")[:-2]]
    assert told.endswith(b"data: [DONE]\n\n")
    assert {chunk["id"] for chunk in chunks} == {"chatcmpl-1"}
    if size == 100:
        assert len(chunks) == 2
        assert "not_stored" not in chunks[-1]
    else:
        assert (chunks[-1]["store"], chunks[-1]["not_stored"]) == (False, "too_large")
        assert chunks[-1]["choices"] == [{"index": 0, "delta": {}, "finish_reason": None}]


@pytest.mark.parametrize("metadata", ["x", [1], {"a": 1}])
async def test_metadata_that_cannot_be_kept_is_refused_before_the_target(
    open_store, send, metadata
) -> None:
    """Red before: it was stored, and a list that asks for metadata was a 500."""
    with pytest.raises(RequestError, match="metadata"):
        await send(open_store(), ask(metadata=metadata), START, body(WHOLE))
