"""What cannot be relayed is billed all the same, and may say what it used."""

import json
from typing import Any

import pytest

from backends.chunks import parse_answer
from backends.errors import BackendError, InvalidResponse
from backends.sse import PLAIN_LIMIT_BYTES
from backends.unreadable_answers import LIMIT_BYTES, usage_of_unreadable
from gateway.kinds.relay import ByteRelay

USAGE = {"prompt_tokens": 7, "completion_tokens": 2}
ANSWER = json.dumps({"choices": [{"message": {"content": "a"}}], "usage": USAGE})
CHUNK = b'data: {"choices": [{"delta": {"content": "a"}}]}\n\n'
TOLD = b'data: {"choices": [], "usage": %b}\n\n' % json.dumps(USAGE).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbf" + ANSWER.encode(),
        ANSWER.encode("utf-16"),
        (ANSWER + ANSWER).encode(),
        CHUNK + TOLD + b"data: [DONE]\n\n",
        b"event: message\n" + CHUNK + TOLD,
        TOLD.rstrip(),
    ],
)
def test_an_answer_that_is_no_json_object_tells_its_usage(body: bytes) -> None:
    """Red before: booked at the whole hold, though the figure stands in it."""
    with pytest.raises(InvalidResponse) as caught:
        parse_answer(body)
    assert caught.value.usage == USAGE


TIERED = CHUNK.replace(b'"choices"', b'"service_tier": "priority", "choices"')
MESSAGE_EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {"id": "m", "model": "m", "usage": {
        "input_tokens": 10, "cache_read_input_tokens": 4, "output_tokens": 1,
        "service_tier": "priority",
    }}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 20}},
    {"type": "message_stop"},
]  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [
        ANSWER[:-1].encode() + b', "service_tier": "priority"}' + ANSWER.encode(),
        TIERED + TOLD,
        TOLD + TIERED,
        TIERED.replace(b"priority", b"flex") + TIERED + TOLD,
        TIERED.strip() + b"\n" + TOLD,
    ],
)
def test_an_answer_that_cannot_be_read_tells_its_tier(body: bytes) -> None:
    """Red before: booked at the standard tier's prices, half of what was billed."""
    with pytest.raises(InvalidResponse) as caught:
        parse_answer(body)
    assert caught.value.usage == {**USAGE, "service_tier": "priority"}


def test_a_tier_that_is_no_word_is_left_out() -> None:
    assert usage_of_unreadable(TIERED.replace(b'"priority"', b"3") + TOLD) == USAGE


@pytest.mark.parametrize("end", [b"\n\n", b"\n"])
def test_events_of_messages_where_none_were_asked_for_tell_the_whole_usage(end: bytes) -> None:
    """Red before: the last event counts output alone, so it was disputed, at all that was held."""
    body = end.join(
        b"event: %b\ndata: %b" % (str(event["type"]).encode(), json.dumps(event).encode())
        for event in MESSAGE_EVENTS
    )
    usage = usage_of_unreadable(body)
    assert usage is not None
    told = {
        name: usage.get(name) for name in ("prompt_tokens", "completion_tokens", "service_tier")
    }
    assert told == {"prompt_tokens": 14, "completion_tokens": 20, "service_tier": "priority"}
    assert usage["prompt_tokens_details"] == {"cached_tokens": 4}


LINES = CHUNK.strip() + b"\n" + TOLD.strip()


@pytest.mark.parametrize(
    "form", [LINES, LINES.replace(b"data: ", b""), LINES + b"\ndata: [DONE]\n"]
)
def test_a_stream_of_lines_tells_its_usage(form: bytes) -> None:
    """Red before: a document a line, or no empty line between events, was free."""
    relay = ByteRelay(hide_usage=True)
    relay.feed(form)
    with pytest.raises(BackendError) as caught:
        relay.check_end()
    assert caught.value.usage == USAGE


@pytest.mark.parametrize(
    ("form", "hides"),
    [
        (b"", False), (b"<html>\n\n", False), (b" <!doctype html>", False),
        (b"data: \xff\n\n", True), (b"hello\n\n", True), (b'{"done": false}\n' * 3, True),
        (b"x" * (PLAIN_LIMIT_BYTES + 1), True),
    ],
)  # fmt: skip
def test_bytes_that_are_no_page_hide_an_answer(form: bytes, hides: bool) -> None:
    """Red before: such a stream was booked at its prompt."""
    relay = ByteRelay(hide_usage=True)

    def read() -> None:
        relay.feed(form)
        relay.check_end()

    with pytest.raises(BackendError) as caught:
        read()
    assert caught.value.hides_output == hides


@pytest.mark.parametrize("end", [b"", b"\n\n"])
def test_an_answer_in_one_piece_where_a_stream_was_asked_for_tells_its_usage(end: bytes) -> None:
    """Red before: booked at its prompt alone, so that its output was free."""
    relay = ByteRelay(hide_usage=True)

    def read() -> None:
        relay.feed(ANSWER.encode() + end)
        relay.check_end()

    with pytest.raises(BackendError) as caught:
        read()
    assert caught.value.usage == USAGE


@pytest.mark.parametrize(
    "body",
    [
        b"", b"{", b"[1]", b"<html>", b"data: {", b"data: \xff\n\n", b"[" * 100_000,
        b'{"a": %b}' % (b"9" * 9999), b'{"a": "%b"}' % (b"x" * LIMIT_BYTES),
        b"data: [DONE]", b"\x00" * 9,
    ],
)  # fmt: skip
def test_what_tells_nothing_is_nothing(body: bytes) -> None:
    assert usage_of_unreadable(body) is None
