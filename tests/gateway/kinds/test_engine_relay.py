"""An own engine's stream: its usage is cut out and summed, and its words are not looked for."""

import json
from typing import Any

import pytest

from gateway.kinds import relay as relays
from gateway.kinds.engine_relay import PLAIN_CHUNK_BYTES, EventRelay


def event(words: dict[str, Any], index: int = 0, prompt: int = 9) -> bytes:
    choice = {"index": index, "delta": words, "finish_reason": None}
    usage = {"prompt_tokens": prompt, "completion_tokens": 1, "total_tokens": prompt + 1}
    return b"data: %b\n\n" % json.dumps({"choices": [choice], "usage": usage}).encode()


def test_several_prompts_add_their_inputs() -> None:
    relay = EventRelay(True, choices=4, n=2)
    for index, prompt in enumerate([9, 9, 30, 30]):
        assert b"usage" not in relay.feed(event({"content": "a"}, index, prompt))
    assert relay.usage["prompt_tokens"] == 39


@pytest.mark.parametrize(("length", "looks"), [(10, 0), (PLAIN_CHUNK_BYTES, 1)])
def test_only_a_long_chunk_of_words_is_looked_through(monkeypatch, length, looks) -> None:
    looked, look = [], relays.unnamed_words
    monkeypatch.setattr(relays, "unnamed_words", lambda value: looked.append(1) or look(value))
    relay = EventRelay(True)
    relay.feed(event({"content": "é" * length}))
    assert (len(looked), relay.content_events) == (looks, 1)
