"""Chunks without usage that are alike but for their words are counted as if all were read."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.errors import BackendError
from gateway.kinds import relay as relays
from gateway.kinds.chunk_template import LIMIT_BYTES, WordFrames, frame_of
from gateway.kinds.relay import ByteRelay

PICTURE = f"![a](data:image/png;base64,{'A' * 300})"


class NoFrames(WordFrames):
    """The control: nothing is remembered."""

    def learn(self, payload: bytes) -> None:
        """Each chunk is looked through."""


def event(delta: Any, of_choice: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": None, **(of_choice or {})}
    return {"id": "c", "object": "chat.completion.chunk", "choices": [choice], **more}


def payload_of(document: dict[str, Any], *, compact: bool = True, escaped: bool = False) -> bytes:
    separators = (",", ":") if compact else None
    return json.dumps(document, separators=separators, ensure_ascii=escaped).encode()


texts = st.one_of(
    st.sampled_from(["", "word ", 'a "b" \\', "\\", "\n", "中文", PICTURE, '"},"obfuscation":"x']),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=9),
)
names = st.sampled_from([
    "content", "reasoning_content", "reasoning", "text", "refusal", "tomorrow", "role", "id",
])  # fmt: skip
deltas = st.one_of(
    texts.map(lambda text: {"content": text}),
    st.dictionaries(names, texts, max_size=3),
    texts.map(lambda text: {"content": [{"type": "text", "text": text}]}),
    texts.map(lambda text: {"tool_calls": [{"function": {"name": "f", "arguments": text}}]}),
)
events = st.builds(
    event,
    deltas,
    st.sampled_from([None, {"index": 1}, {"logprobs": None}, {"tomorrow": "x" * 9}]),
) | st.builds(event, deltas, obfuscation=st.sampled_from(["a1", "b23", "x y", ""]))
told = st.sampled_from([
    event({}, {"finish_reason": "stop"}),
    event({"content": "x"}, usage={"prompt_tokens": 3, "completion_tokens": 9}),
    event({"content": "x"}, service_tier="flex"),
])  # fmt: skip
payloads = st.builds(payload_of, events | told, compact=st.booleans(), escaped=st.booleans())
runs = st.builds(lambda payload, count: [payload] * count, payloads, st.integers(1, 3))


def state(relay: ByteRelay) -> tuple[Any, ...]:
    return (
        relay.usage, relay.usage_final, relay.usage_behind, relay.said_bytes, relay.content_events,
        relay.most_said_bytes, relay.unnamed_bytes, relay.finish_reason, relay.is_ended,
        relay.tier, relay.shown,
    )  # fmt: skip


@given(st.lists(runs, max_size=8), st.booleans())
def test_a_stream_is_relayed_and_counted_as_if_all_were_looked_through(parts, hide) -> None:
    short, full = ByteRelay(hide, choices=2), ByteRelay(hide, choices=2)
    full._frames = NoFrames()
    for payload in (payload for part in parts for payload in part):
        outcomes = []
        for relay in (short, full):
            try:
                outcomes.append(relay.feed(b"data: %b\n\n" % payload))
            except BackendError as error:
                outcomes.append((type(error), str(error)))
        assert outcomes[0] == outcomes[1]
        assert state(short) == state(full)


@pytest.mark.parametrize(
    ("stream", "decoded"),
    [
        ([event({"content": "word "})], 1),
        ([event({"content": word}, obfuscation=pad) for word, pad in ("ab", "cd")], 1),
        ([event({"reasoning_content": "why", "content": None})], 1),
        ([event({"content": "word ", "tomorrow": "words"})], 60),
    ],
)  # fmt: skip
def test_plain_words_are_read_once(monkeypatch, stream, decoded) -> None:
    read, in_full = [], relays.read_chunk
    monkeypatch.setattr(relays, "read_chunk", lambda data: read.append(data) or in_full(data))
    relay = ByteRelay(True)
    for document in stream * (60 // len(stream)):
        relay.feed(b"data: %b\n\n" % payload_of(document))
    assert (len(read), relay.content_events) == (decoded, 60)


@pytest.mark.parametrize(
    "document",
    [
        event({"content": "abc", "refusal": "abc"}),
        event({"content": "abc", "tool_calls": [{"function": {"arguments": "abc"}}]}),
        event({"refusal": "abc", "annotations": [{"text": "xyz"}]}),
        event({"content": "abc"}, annotations=[{"content": "abc"}]),
        event({"content": "abc"}, usage={"prompt_tokens": 1}),
        event({"content": "abc"}, error={"message": "x"}),
        event({"content": "abc"}, {"finish_reason": "stop"}),
        event({"content": "a\nb"}),
        event({"content": ""}),
        event({"content": "abc"}, padding="x" * LIMIT_BYTES),
        {"choices": [*event({"content": "abc"})["choices"], {"index": 1, "delta": {}}]},
        {"choices": [], "content": "abc"},
    ],
    ids=lambda document: json.dumps(document)[:70],
)
def test_nothing_is_remembered_of_a_chunk_that_says_more(document) -> None:
    assert frame_of(payload_of(document)) is None
