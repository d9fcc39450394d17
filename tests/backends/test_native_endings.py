"""Endings in providers' own words, which LiteLLM calls `stop`."""

import json

import pytest

from backends.errors import UpstreamBroken
from backends.native_endings import tell_ending

SAID = json.dumps({"text": 'he wrote "stop_reason": "model_context_window_exceeded"'}).encode()


def anthropic(reason: str | None, sequence: str | None = None) -> bytes:
    ending = {"content": [json.loads(SAID)], "stop_reason": reason, "stop_sequence": sequence}
    return json.dumps({**ending, "usage": {"output_tokens": 5}}).encode()


def gemini(reason: str) -> bytes:
    return json.dumps({"candidates": [{"content": {}, "finishReason": reason}]}).encode()


def ended(tail: bytes, finish: str | None = "stop") -> dict:
    choice = {"finish_reason": finish}
    tell_ending(choice, tail)
    return choice


STOP, FILTER, CUT = ({"finish_reason": word} for word in ("stop", "content_filter", "length"))
WINDOW = {"native_finish_reason": "model_context_window_exceeded"}


@pytest.mark.parametrize(
    ("tail", "told"),
    [
        (b"", STOP),
        (SAID, STOP),
        (anthropic(None), STOP),
        (anthropic("end_turn"), STOP),
        (anthropic("model_context_window_exceeded"), {**CUT, **WINDOW}),
        (anthropic("stop_sequence", 'a "b"\n'), {**STOP, "stop_reason": 'a "b"\n'}),
        (anthropic("end_turn", "left over"), STOP),
        (b'\x00\x0b{"stopReason":"model_context_window_exceeded"}', {**CUT, **WINDOW}),
        (gemini("STOP"), STOP),
        (gemini("MALFORMED_FUNCTION_CALL"), FILTER),
        (b'{"finish_reason": "ERROR_LIMIT"}', CUT),
        (anthropic("model_context_window_exceeded") + anthropic("end_turn"), STOP),
        (anthropic("pause_turn"), {**STOP, "native_finish_reason": "pause_turn"}),
        (
            b'{"stop_reason": "refusal", "stop_details": {"category": "bio"}}',
            {**STOP, "native_finish_reason": "refusal", "stop_details": {"category": "bio"}},
        ),
        (
            b'{"stop_reason": "refusal", "stop_details": {bio}}',
            {**STOP, "native_finish_reason": "refusal"},
        ),
        (b'{"stop_details": {"category": "bio"}, "stop_reason": "end_turn"}', STOP),
    ],
)
def test_the_last_word_counts(tail: bytes, told: dict) -> None:
    assert ended(tail) == told


@pytest.mark.parametrize("word", ["ERROR", "error", "network_error"])
def test_an_answer_that_failed_is_none(word: str) -> None:
    with pytest.raises(UpstreamBroken):
        ended(json.dumps({"finish_reason": word}).encode())


@pytest.mark.parametrize("finish", ["tool_calls", "length"])
def test_only_an_ordinary_stop_is_told_otherwise(finish: str) -> None:
    told = ended(anthropic("model_context_window_exceeded"), finish)
    assert told == {"finish_reason": finish, **WINDOW}


def test_what_goes_on_has_no_ending() -> None:
    assert ended(anthropic("refusal"), None) == {"finish_reason": None}
