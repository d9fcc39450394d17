"""Endings in a provider's own words, from the last bytes of its answer."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.native_endings import NativeEnding, native_ending


def tail_of(**members: Any) -> bytes:
    return json.dumps({"content": [{"type": "text", "text": "x"}], **members}).encode()


@pytest.mark.parametrize(
    ("tail", "expected"),
    [
        (tail_of(stop_reason="end_turn"), None),
        (tail_of(stop_reason=None), None),
        (b"", None),
        (tail_of(stop_reason="pause_turn"), NativeEnding("pause_turn")),
        (tail_of(stop_reason="stop_sequence", stop_sequence="é\n"),
         NativeEnding("stop_sequence", "é\n")),
        (tail_of(stop_reason="stop_sequence", stop_sequence=None), NativeEnding("stop_sequence")),
        (tail_of(stop_reason="pause_turn", stop_sequence="x"), NativeEnding("pause_turn")),
        (tail_of(stopReason="model_context_window_exceeded"),
         NativeEnding("model_context_window_exceeded")),
        (tail_of(stop_reason="refusal", stop_details={"category": None}),
         NativeEnding("refusal", None, {"category": None})),
        (b'{"stop_reason": "refusal", "stop_details": {x}}', NativeEnding("refusal")),
        # A tool's call comes before the ending.
        (tail_of(input={"stop_reason": "refusal"}, stop_reason="tool_use"), None),
    ],
)  # fmt: skip
def test_endings(tail: bytes, expected: NativeEnding | None) -> None:
    assert native_ending(tail) == expected


@given(st.text())
def test_what_a_model_writes_ends_nothing(words: str) -> None:
    for written in (words, f'"stop_reason": "refusal"{words}', '\\"stop_reason": "refusal"'):
        tail = json.dumps({"content": [{"text": written}], "stop_reason": "end_turn"})
        assert native_ending(tail.encode()) is None
        before = json.dumps({"stop_reason": "pause_turn", "content": [{"text": written}]})
        assert native_ending(before.encode()) == NativeEnding("pause_turn")


@given(st.binary())
def test_any_bytes_are_read(tail: bytes) -> None:
    native_ending(tail)
    native_ending(b'"stop_reason": "stop_sequence", "stop_sequence": "' + tail + b'"')
    native_ending(b'"stop_reason": "refusal", "stop_details": {' + tail + b"}")


def test_an_answer_that_was_cut_is_no_whole_one() -> None:
    choice = {"finish_reason": "stop"}
    NativeEnding("model_context_window_exceeded").tell(choice)
    assert choice == {
        "finish_reason": "length", "native_finish_reason": "model_context_window_exceeded"
    }  # fmt: skip
