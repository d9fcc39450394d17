"""Anthropic's events and documents: what its SDKs build of them is what the target said."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from whole_answer import encode_whole

from gateway.request.dialects.messages_encoder import MessagesEncoder, error_document, usage
from ledger.journals.records import TokenCounts

USED = {
    "input_tokens": 10,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 20,
    "output_tokens": 12,
    "output_tokens_details": {"thinking_tokens": 5},
}


def built(events: list[dict]) -> dict:
    """What a client builds of a stream: the reference's rules, block by block."""
    message = events[0]["message"]
    partial: dict[int, str] = {}
    for event in events[1:]:
        kind = event["type"]
        if kind == "content_block_start":
            assert event["index"] == len(message["content"])
            message["content"].append(event["content_block"])
        elif kind == "content_block_delta":
            block, delta = message["content"][event["index"]], event["delta"]
            if delta["type"] == "input_json_delta":
                partial[event["index"]] = partial.get(event["index"], "") + delta["partial_json"]
            else:
                name = delta["type"].removesuffix("_delta")
                block[name] += delta[name]
        elif kind == "message_delta":
            message |= event["delta"]
            message["usage"] |= event["usage"]
    for index, text in partial.items():
        message["content"][index]["input"] = json.loads(text)
    return message


def streamed(events, stream: bytes) -> list[dict]:
    voice = MessagesEncoder("req_1")
    return events(voice.feed(stream) + voice.end())


CALLS = [
    {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x":1}'}},
    {"index": 1, "id": "b", "function": {"name": "g", "arguments": ""}},
]
CONTENT = [
    {"type": "thinking", "thinking": "hm", "signature": ""},
    {"type": "text", "text": "so"},
    {"type": "tool_use", "id": "a", "name": "f", "input": {"x": 1}},
    {"type": "tool_use", "id": "b", "name": "g", "input": {}},
]


def test_a_stream_and_a_whole_answer_are_one_message(events, stream_of, answer_of) -> None:
    message = {"reasoning": "hm", "content": "so", "tool_calls": CALLS}
    whole = json.loads(encode_whole(MessagesEncoder("req_1"), answer_of(message, "tool_calls")))
    assert whole == {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m1",
        "content": CONTENT,
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": USED,
    }
    told = streamed(
        events, stream_of({"reasoning": "hm"}, {"content": "so"}, {"tool_calls": CALLS})
    )
    assert built(told) == whole


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_whatever_is_said_every_block_begins_once_and_ends_once(
    events, stream_of, answers, data
) -> None:
    deltas = data.draw(answers)
    told = streamed(events, stream_of(*deltas))
    message = built([*told])
    said = [block["text"] for block in message["content"] if block["type"] == "text"]
    assert "".join(said) == "".join(delta.get("content") or "" for delta in deltas)
    starts = [event["index"] for event in told if event["type"] == "content_block_start"]
    stops = [event["index"] for event in told if event["type"] == "content_block_stop"]
    assert sorted(starts) == sorted(stops) == list(range(len(message["content"])))
    assert [event["type"] for event in told[-2:]] == ["message_delta", "message_stop"]
    assert message["usage"] == USED


@pytest.mark.parametrize(
    ("finish", "more", "expected"),
    [
        ("stop", {}, ("end_turn", None)),
        ("length", {}, ("max_tokens", None)),
        ("content_filter", {}, ("refusal", None)),
        ("stop", {"stop_reason": "END"}, ("stop_sequence", "END")),
        ("stop", {"stop_reason": 128009}, ("end_turn", None)),  # the number of a token
        ("stop", {"matched_stop": "END"}, ("stop_sequence", "END")),  # SGLang
        ("stop", {"matched_stop": 2}, ("end_turn", None)),
        ("stop", {"native_finish_reason": "pause_turn"}, ("pause_turn", None)),
        ("stop", {"native_finish_reason": "compaction"}, ("compaction", None)),
        ("stop", {"native_finish_reason": "STOP"}, ("end_turn", None)),
        (
            "length",
            {"native_finish_reason": "model_context_window_exceeded"},
            ("model_context_window_exceeded", None),
        ),
        ("unheard-of", {}, ("end_turn", None)),
    ],
)
def test_endings(events, stream_of, answer_of, finish: str, more: dict, expected: tuple) -> None:
    whole = json.loads(
        encode_whole(MessagesEncoder("req_1"), answer_of({"content": "x"}, finish, **more))
    )
    assert (whole["stop_reason"], whole["stop_sequence"]) == expected
    assert built(streamed(events, stream_of({"content": "x"}, finish=finish, **more))) == whole


def test_nothing_is_known_of_the_usage_at_the_start(events, stream_of) -> None:
    first = streamed(events, stream_of({"content": "x"}))[0]
    assert set(first["message"]["usage"].values()) == {0}


def test_a_refusal_is_text(answer_of) -> None:
    whole = json.loads(encode_whole(MessagesEncoder("req_1"), answer_of({"refusal": "no"})))
    assert whole["content"] == [{"type": "text", "text": "no"}]


@pytest.mark.parametrize("arguments", ['{"x": ', "[1]", "x"])
def test_arguments_that_are_no_object_are_not_lost(answer_of, arguments: str) -> None:
    call = {"id": "a", "function": {"name": "f", "arguments": arguments}}
    whole = json.loads(encode_whole(MessagesEncoder("req_1"), answer_of({"tool_calls": [call]})))
    assert whole["content"][0]["input"] == {"invalid_arguments": arguments}


@pytest.mark.parametrize(
    ("code", "kind"),
    [("upstream_error", "api_error"), ("overloaded", "overloaded_error"),
     ("upstream_timeout", "timeout_error"), (None, "api_error")],
)  # fmt: skip
def test_a_stream_that_breaks_says_so(events, code: str | None, kind: str) -> None:
    error = json.dumps({"error": {"message": "broken", "code": code}}).encode()
    told = streamed(events, b"data: " + error + b"\n\n")
    assert told == [error_document(500, "broken", "req_1") | {"error": told[0]["error"]}]
    assert told[0]["error"] == {"type": kind, "message": "broken"}


def test_every_token_is_counted_once() -> None:
    tokens = TokenCounts(
        input=1, cached=2, cache_write=4, cache_write_1h=8, output=16, audio_input=32
    )
    assert usage(tokens) == {
        "input_tokens": 33,
        "cache_creation_input_tokens": 12,
        "cache_read_input_tokens": 2,
        "output_tokens": 16,
        "cache_creation": {"ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 8},
    }


@pytest.mark.parametrize("stream", [True, False])
def test_the_usage_told_is_the_usage_booked(stream: bool) -> None:
    """A target may report nothing: the books have an estimate, and the client was told zeros."""
    voice = MessagesEncoder("req_1")
    said = {"content": "so"}
    chunk = {"choices": [{"index": 0, "delta": said, "message": said, "finish_reason": "stop"}]}
    if stream:
        begun = voice.feed(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        assert b'"output_tokens":3' not in begun
    voice.booked = TokenCounts(input=7, output=3)
    told = voice.end() if stream else encode_whole(voice, json.dumps(chunk).encode())
    assert b'"input_tokens":7' in told
    assert b'"output_tokens":3' in told


REFUSED = {"type": "refusal", "category": None, "explanation": None}


@pytest.mark.parametrize(
    ("delta", "finish", "more", "details"),
    [
        ({"content": "x"}, "content_filter", {}, REFUSED),
        ({"refusal": "I will not."}, "stop", {}, {**REFUSED, "explanation": "I will not."}),
        (
            {"content": "x"},
            "content_filter",
            {"native_finish_reason": "refusal", "stop_details": {"category": "bio"}},
            {**REFUSED, "category": "bio"},
        ),
        ({"content": "x"}, "stop", {}, None),
        ({"refusal": "", "content": "x"}, "stop", {}, None),
    ],
)
def test_a_refusal_says_what_is_known_of_it(
    events, stream_of, answer_of, delta: dict, finish: str, more: dict, details: dict | None
) -> None:
    whole = json.loads(encode_whole(MessagesEncoder("req_1"), answer_of(delta, finish, **more)))
    assert whole.get("stop_details") == details
    assert (whole["stop_reason"] == "refusal") is (details is not None)
    assert built(streamed(events, stream_of(delta, finish=finish, **more))) == whole


def test_usage_has_its_parts_where_there_are_any() -> None:
    told = usage(TokenCounts(input=3, cache_write=4, cache_write_1h=5, searches=2))
    assert told["cache_creation"] == {
        "ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 5
    }  # fmt: skip
    assert told["cache_creation_input_tokens"] == 9
    assert told["server_tool_use"] == {"web_search_requests": 2}
    assert "output_tokens_details" not in told


def test_a_tier_is_told_in_anthropics_words(answer_of) -> None:
    for tier, told in (("default", "standard"), ("priority", "priority"), ("flex", None)):
        answer = json.loads(answer_of({"content": "x"}))
        whole = encode_whole(
            MessagesEncoder("req_1"), json.dumps({**answer, "service_tier": tier}).encode()
        )
        assert json.loads(whole)["usage"].get("service_tier") == told


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [(b'"so"', b'"s\\ud800"', "s\ufffd"), (b'"index"', b'"x":NaN,"index"', "so"),
     (b'"index"', b'"x":1e999,"index"', "so")],
)  # fmt: skip
def test_an_answer_that_only_lenient_readers_read(old: bytes, new: bytes, said: str) -> None:
    """Red before: it was a 500, and was paid for."""
    choice = {"index": 0, "message": {"role": "assistant", "content": "so"}}
    body = json.dumps({"choices": [{**choice, "finish_reason": "stop"}]}).encode()
    voice = MessagesEncoder("req_1")
    voice.read_whole(body.replace(old, new))
    assert voice.document()["content"] == [{"type": "text", "text": said}]


def test_an_answer_that_nobody_reads_says_nothing() -> None:
    voice = MessagesEncoder("req_1")
    voice.read_whole(b"<html>")
    assert voice.document()["content"] == []


@pytest.mark.parametrize(
    ("address", "line"),
    [
        (
            "data:image/png;base64,aGk=",
            "\n[A picture is left out here. `/v1/chat/completions` tells it.]\n",
        ),
        ("https://a/b.png", "\n![picture](https://a/b.png)\n"),
    ],
)
def test_a_picture_that_was_made_is_told_of_in_a_line(
    events, stream_of, answer_of, address: str, line: str
) -> None:
    images = [{"type": "image_url", "image_url": {"url": address}}]
    whole = encode_whole(MessagesEncoder("req_1"), answer_of({"content": "so", "images": images}))
    content = [{"type": "text", "text": "so" + line}]
    assert json.loads(whole)["content"] == content
    told = streamed(events, stream_of({"content": "so"}, {"content": "", "images": images}))
    assert built(told)["content"] == content


def test_what_was_said_in_sound_is_the_text(events, stream_of, answer_of) -> None:
    sound = {"id": "a", "data": "AAAA", "expires_at": 9, "transcript": "so it is"}
    whole = encode_whole(MessagesEncoder("req_1"), answer_of({"content": None, "audio": sound}))
    assert json.loads(whole)["content"] == [{"type": "text", "text": "so it is"}]
    stream = stream_of({"audio": {"transcript": "so "}}, {"audio": {"transcript": "it is"}})
    assert built(streamed(events, stream))["content"] == [{"type": "text", "text": "so it is"}]
