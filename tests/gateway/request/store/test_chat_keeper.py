"""One chat completion on its way out: stored with its last byte, or said not to be."""

import json

import pytest

from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.kinds.chat import read_chat
from gateway.request.dialects.translated_response import NOT_STORED
from gateway.request.store.chat_keeper import ChatKeeper, without_store
from router.types import Feature, Residency

START = {"type": "http.response.start", "status": 200, "headers": []}
WHOLE = json.dumps({"id": "c1", "choices": [], "model": "m"}).encode()


class Reply:
    broken = False
    residency = Residency.INTERNAL_ONLY


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
    assert sent == [START, body(WHOLE)]
    found = await store.find("a", "c1")
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
    assert [message.get("body") for message in sent] == [None, event, b"data: [DONE]\n\n"]
    assert await store.find("a", "c2") is not None


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


async def test_a_targets_id_takes_no_objects_place(open_store, send, document) -> None:
    """Red before: a target that always says one id replaced what was stored, conversations too."""
    store = open_store()
    await store.store([document("c1", {"id": "c1"}, kind="conversation")])
    start, _ = await send(store, ask(), START, body(WHOLE))
    assert start["headers"] == [(NOT_STORED, b"taken")]
    found = await store.find("a", "c1")
    assert found is not None
    assert found.kind == "conversation"


@pytest.mark.parametrize("metadata", ["x", [1], {"a": 1}])
async def test_metadata_that_cannot_be_kept_is_refused_before_the_target(
    open_store, send, metadata
) -> None:
    """Red before: it was stored, and a list that asks for metadata was a 500."""
    with pytest.raises(RequestError, match="metadata"):
        await send(open_store(), ask(metadata=metadata), START, body(WHOLE))
