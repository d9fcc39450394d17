"""Answers of Messages as chat's: what they say, how they end, what they used, however they come."""

import json
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.messages_answer import MessagesStream, chat_answer
from backends.messages_usage import chat_usage
from backends.native_events import MEMBER, native_document
from backends.sse import EventSplitter, data_spans, join_data
from ledger.cache_conventions import Convention
from ledger.usage import has_unread, tokens_from_usage
from ledger.usage_figures import UsageError

USAGE = {
    "input_tokens": 4,
    "cache_creation_input_tokens": 30,
    "cache_read_input_tokens": 200,
    "cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 20},
    "output_tokens": 2,
    "server_tool_use": None,
    "service_tier": "priority",
}


def event(name: str, **members: Any) -> bytes:
    return f"event: {name}\ndata: {json.dumps({'type': name, **members})}\n\n".encode()


def told(stream: bytes) -> list[dict[str, Any]]:
    return [
        json.loads(data)
        for event in EventSplitter().feed(stream)
        if (spans := data_spans(event)) and (data := join_data(event, spans)) != b"[DONE]"
    ]


STREAM = [
    event("message_start", message={"id": "msg_1", "model": "claude", "usage": USAGE}),
    event("ping"),
    event("content_block_start", index=0, content_block={"type": "thinking", "thinking": ""}),
    event("content_block_delta", index=0, delta={"type": "thinking_delta", "thinking": "hm"}),
    event("content_block_delta", index=0, delta={"type": "signature_delta", "signature": "x"}),
    event("content_block_stop", index=0),
    event("content_block_start", index=1, content_block={"type": "text", "text": ""}),
    event("content_block_delta", index=1, delta={"type": "text_delta", "text": "é🦊"}),
    event("content_block_stop", index=1),
    event(
        "content_block_start", index=2,
        content_block={"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
    ),
    event(
        "content_block_delta", index=2, delta={"type": "input_json_delta", "partial_json": "{}"}
    ),
    event(
        "content_block_start", index=3,
        content_block={"type": "tool_use", "id": "t", "name": "f", "input": {}},
    ),
    event(
        "content_block_delta", index=3, delta={"type": "input_json_delta", "partial_json": '{"a":'}
    ),
    event(
        "content_block_delta", index=3, delta={"type": "input_json_delta", "partial_json": "1}"}
    ),
    event(
        "message_delta", delta={"stop_reason": "tool_use", "stop_sequence": None},
        usage={"output_tokens": 9},
    ),
    event("message_stop"),
]  # fmt: skip


def fed(*pieces: bytes, native: bool = False) -> tuple[bytes, MessagesStream]:
    stream = MessagesStream(created_s=7, native=native)
    return b"".join(map(stream.feed, pieces)), stream


def test_a_stream_says_in_chat_what_it_said() -> None:
    out, stream = fed(*STREAM)
    chunks = told(out)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert deltas == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "hm"},
        {"content": "é🦊"},
        {"unnamed": {"type": "input_json_delta", "partial_json": "{}"}},  # of the target's tool
        {"tool_calls": [
            {"index": 0, "id": "t", "type": "function", "function": {"name": "f", "arguments": ""}},
        ]},
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"a":'}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": "1}"}}]},
        {},
    ]  # fmt: skip
    assert chunks[-2]["choices"][0]["finish_reason"] == "tool_calls"
    assert {chunk["id"] for chunk in chunks} == {"msg_1"}
    assert (chunks[0]["usage"]["completion_tokens"], chunks[0]["usage"]["prompt_tokens"]) == (
        0,
        234,
    )
    assert chunks[-1]["usage"]["completion_tokens"] == 9
    assert chunks[-1]["service_tier"] == "priority"
    assert b": ping\n\n" in out
    assert out.endswith(b"data: [DONE]\n\n")
    assert stream.ended


@pytest.mark.parametrize(
    ("given", "pieces", "read"),
    [
        ({}, [], {}), ({}, [""], {}), ({}, ["", '{"a":1}'], {"a": 1}), ({"b": 2}, [], {"b": 2}),
    ],
)  # fmt: skip
def test_a_call_has_arguments_that_can_be_read(given: dict, pieces: list[str], read: dict) -> None:
    """Red before: a call of a tool without any had none at all, which is no JSON."""
    block = {"type": "tool_use", "id": "t", "name": "f", "input": given}
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    out, _ = fed(
        event("content_block_start", index=4, content_block=block),
        *(event("content_block_delta", index=4, delta=delta) for delta in deltas),
        event("content_block_stop", index=4),
        event("content_block_stop", index=4),
    )
    calls = [chunk["choices"][0]["delta"]["tool_calls"][0] for chunk in told(out)]
    arguments = "".join(call["function"]["arguments"] for call in calls)
    assert json.loads(arguments) == read
    assert {call["index"] for call in calls} == {0}


def test_natively_each_event_comes_back_and_calls_at_the_target_count() -> None:
    out, _ = fed(*STREAM, native=True)
    documents = [native_document(event) for event in EventSplitter().feed(out)]
    sent = [join_data(event, data_spans(event) or []) for event in STREAM]
    assert [document for document in documents if document] == sent
    calls = [
        chunk["choices"][0]["delta"].get("tool_calls") for chunk in told(out) if chunk["choices"]
    ]
    assert [call[0]["index"] for call in calls if call] == [0, 0, 1, 1, 1]


@given(cuts=st.lists(st.integers(0, len(b"".join(STREAM))), max_size=9), native=st.booleans())
def test_it_says_the_same_wherever_it_is_cut(cuts: list[int], native: bool) -> None:
    whole = b"".join(STREAM)
    places = sorted({0, len(whole), *cuts})
    pieces = [whole[a:b] for a, b in pairwise(places)]
    assert fed(*pieces, native=native)[0] == fed(whole, native=native)[0]


@pytest.mark.parametrize(
    ("ending", "told_ending"),
    [
        ({"stop_reason": "end_turn"}, {"finish_reason": "stop"}),
        ({"stop_reason": "max_tokens"}, {"finish_reason": "length"}),
        (
            {"stop_reason": "stop_sequence", "stop_sequence": "END"},
            {"finish_reason": "stop", "stop_reason": "END"},
        ),
        (
            {"stop_reason": "model_context_window_exceeded"},
            {"finish_reason": "length", "native_finish_reason": "model_context_window_exceeded"},
        ),
        (
            {"stop_reason": "pause_turn"},
            {"finish_reason": "stop", "native_finish_reason": "pause_turn"},
        ),
        (
            {"stop_reason": "refusal", "stop_details": {"category": "cyber"}},
            {
                "finish_reason": "content_filter", "native_finish_reason": "refusal",
                "stop_details": {"category": "cyber"},
            },
        ),
        ({"stop_reason": "something_new"}, {"finish_reason": "stop"}),
    ],
)  # fmt: skip
def test_endings_are_told_in_both_words(ending: dict, told_ending: dict) -> None:
    chunks = told(fed(event("message_delta", delta=ending, usage={}))[0])
    choice = chunks[0]["choices"][0]
    assert {name: value for name, value in choice.items() if name not in ("index", "delta")} == (
        told_ending
    )
    body = json.dumps({"content": [], **ending}).encode()
    whole = json.loads(chat_answer(body, created_s=1, native=False))["choices"][0]
    assert {name: value for name, value in whole.items() if name not in ("index", "message")} == (
        told_ending
    )


def test_errors_and_what_is_no_event_stay_as_they_are() -> None:
    failed = event("error", error={"type": "overloaded_error", "message": "x"})
    assert fed(failed, native=True)[0] == failed
    odd = b"data: nothing\n\n: alive\n\ndata: [1]\n\n"
    assert fed(odd)[0] == odd
    for body in (b"<html>", b'{"type":"error","error":{}}', b"[]"):
        assert chat_answer(body, created_s=1, native=True) == body


def test_a_whole_answer_has_its_own_beside_it() -> None:
    message = {
        "id": "msg_1", "model": "claude", "usage": USAGE, "stop_reason": "tool_use",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "x"},
            {"type": "text", "text": "a"}, {"type": "text", "text": "b"},
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": 1}},
            {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
        ],
    }  # fmt: skip
    body = json.dumps(message, indent=1).encode()
    chat = json.loads(chat_answer(body, created_s=7, native=False))
    assert chat["choices"][0]["message"] == {
        "role": "assistant", "content": "ab", "reasoning_content": "hm",
        "tool_calls": [{
            "index": 0, "id": "t", "type": "function",
            "function": {"name": "f", "arguments": '{"a":1}'},
        }],
    }  # fmt: skip
    assert (chat["created"], chat["model"], MEMBER in chat) == (7, "claude", False)
    assert body in chat_answer(body, created_s=7, native=True)


# ---------------------------------------------------------------- usage


CALL = {"type": "message", "input_tokens": 300, "output_tokens": 90}
SHRUNK = {"type": "compaction", "input_tokens": 1000, "output_tokens": 50}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**9) | st.floats(0, 9) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["type", "index", "text", "input_tokens"]), inner)
    ),
    max_leaves=4,
)


def places(value: Any, path: tuple = ()) -> list[tuple]:
    if not isinstance(value, dict | list):
        return [path]
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


def changed(value: Any, path: tuple, to: Any) -> Any:
    if not path:
        return to
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], to)
    return copy


EVENTS = [json.loads(event.split(b"data: ")[1]) for event in STREAM]
FULL = {
    **USAGE, "output_tokens_details": {"thinking_tokens": 1}, "server_tool_use": {"n": 0},
    "iterations": [{**CALL, "cache_creation": {"ephemeral_5m_input_tokens": 1}}, SHRUNK],
}  # fmt: skip
ANSWER = {
    "id": "m", "model": "c", "stop_reason": "refusal", "stop_details": {}, "usage": FULL,
    "content": [event["content_block"] for event in EVENTS if "content_block" in event],
}  # fmt: skip


@given(data=st.data())
def test_no_member_of_any_kind_breaks_the_translation(data: st.DataObject) -> None:
    events = [*EVENTS[:-2], {**EVENTS[-2], "usage": FULL}, EVENTS[-1]]
    place = data.draw(st.sampled_from(places(events)[1:]))
    for native in (False, True):
        told = changed(events, place, data.draw(JSON))
        fed(*(f"data: {json.dumps(each)}\n\n".encode() for each in told), native=native)
        place_ = data.draw(st.sampled_from(places(ANSWER)[1:]))
        body = json.dumps(changed(ANSWER, place_, data.draw(JSON))).encode()
        chat_answer(body, created_s=1, native=native)
    usage = changed(FULL, data.draw(st.sampled_from(places(FULL)[1:])), data.draw(JSON))
    has_unread(chat_usage(usage))
    with suppress(UsageError):
        tokens_from_usage(usage, Convention.CACHED_INSIDE)


@pytest.mark.parametrize(
    ("usage", "last"),
    [
        (None, None), ({}, None), ({"output_tokens": None}, None),
        ({"server_tool_use": {"web_search_requests": 2}}, None),
        ({"output_tokens": 0}, 0), ({"output_tokens": 50}, 50), ({"iterations": [CALL]}, 90),
    ],
)  # fmt: skip
def test_what_was_counted_at_the_start_is_no_last_word(usage, last) -> None:
    end = event("message_delta", delta={"stop_reason": "end_turn"}, usage=usage)
    chunks = told(fed(*STREAM[:-2], end, STREAM[-1])[0])
    final = [chunk["usage"]["completion_tokens"] for chunk in chunks if not chunk["choices"]]
    assert final == ([] if last is None else [last])
    assert chunks[-1]["service_tier"] == "priority"
    running = [chunk["usage"] for chunk in chunks if chunk["choices"] and "usage" in chunk]
    assert {told["completion_tokens"] for told in running} == {0}
    assert "finish_reason" in chunks[-1 if last is None else -2]["choices"][0]
    if usage and "server_tool_use" in usage:
        assert running[-1]["server_tool_use"] == usage["server_tool_use"]
