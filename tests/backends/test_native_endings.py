"""Endings in providers' own words, which LiteLLM calls `stop`."""

import json

import pytest

from backends.errors import UpstreamBroken
from backends.native_endings import NativeEnding, correct_choice, read_ending

SAID = json.dumps({"text": 'he wrote "stop_reason": "model_context_window_exceeded"'}).encode()


def anthropic(reason: str | None, sequence: str | None = None) -> bytes:
    ending = {"content": [json.loads(SAID)], "stop_reason": reason, "stop_sequence": sequence}
    return json.dumps({**ending, "usage": {"output_tokens": 5}}).encode()


def gemini(reason: str) -> bytes:
    return json.dumps({"candidates": [{"content": {}, "finishReason": reason}]}).encode()


@pytest.mark.parametrize(
    ("tail", "ending"),
    [
        (b"", NativeEnding()),
        (SAID, NativeEnding()),
        (anthropic(None), NativeEnding()),
        (anthropic("end_turn"), NativeEnding()),
        (anthropic("model_context_window_exceeded"), NativeEnding("length")),
        (anthropic("stop_sequence", 'a "b"\n'), NativeEnding(stop='a "b"\n')),
        (anthropic("end_turn", "left over"), NativeEnding()),
        (b'\x00\x0b{"stopReason":"model_context_window_exceeded"}', NativeEnding("length")),
        (gemini("STOP"), NativeEnding()),
        (gemini("MALFORMED_FUNCTION_CALL"), NativeEnding("content_filter")),
        (b'{"finish_reason": "ERROR_LIMIT"}', NativeEnding("length")),
        (anthropic("model_context_window_exceeded") + anthropic("end_turn"), NativeEnding()),
    ],
)
def test_the_last_word_counts(tail: bytes, ending: NativeEnding) -> None:
    assert read_ending(tail) == ending


@pytest.mark.parametrize("word", ["ERROR", "error", "network_error"])
def test_an_answer_that_failed_is_none(word: str) -> None:
    with pytest.raises(UpstreamBroken):
        read_ending(json.dumps({"finish_reason": word}).encode())


@pytest.mark.parametrize("finish", ["tool_calls", "length", None])
def test_only_an_ordinary_stop_is_told_otherwise(finish: str | None) -> None:
    choice = {"finish_reason": finish}
    correct_choice(choice, NativeEnding("length", "x"))
    assert choice == {"finish_reason": finish}
