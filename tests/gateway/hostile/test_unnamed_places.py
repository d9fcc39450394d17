"""Words in places that have no name here, without usage: each is booked at its bill at least."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from billing_provider import PROMPT, ProviderCall

CHAT, MESSAGES = "/v1/chat/completions", "/v1/messages"
WORDS = "word " * 200
ASKED = {"max_tokens": 900, "messages": [{"role": "user", "content": "hello there"}]}
BLOCKS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "a kind of tomorrow": ({"type": "musing", "musing": WORDS}, []),
    "its changes": ({"type": "musing"}, [{"type": "musing_delta", "musing": WORDS}]),
    "a call at the target": (
        {"type": "server_tool_use", "id": "s", "name": "code_execution", "input": {}},
        [{"type": "input_json_delta", "partial_json": WORDS}],
    ),
    "a call of tomorrow": (
        {"type": "remote_use", "id": "s", "input": {}},
        [{"type": "input_json_delta", "partial_json": WORDS}],
    ),
    "beside a known word": (
        {"type": "text", "text": ""}, [{"type": "text_delta", "text": "x", "said": WORDS}],
    ),
}  # fmt: skip


def in_messages(start: dict[str, Any], changes: list[dict[str, Any]]) -> Callable[..., Any]:
    """Say a block in Anthropic's words, streamed or whole, and count nothing."""
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m"}

    async def play(call: ProviderCall) -> None:
        call.bill.input, call.bill.output = PROMPT, 200
        if not call.body.get("stream"):
            block = dict(start)
            for change in changes:
                said = {name: value for name, value in change.items() if name != "type"}
                block |= {"input": said} if "partial_json" in said else said
            call.answer({**message, "content": [block], "stop_reason": "end_turn"})
            return
        call.head()
        call.event({"type": "message_start", "message": {**message, "content": []}})
        call.event({"type": "content_block_start", "index": 0, "content_block": start})
        for change in changes:
            call.event({"type": "content_block_delta", "index": 0, "delta": change})
        call.event({"type": "content_block_stop", "index": 0})
        call.event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
        call.event({"type": "message_stop"})

    return play


def beside(**members: Any) -> Callable[..., Any]:
    """Say one short known word, and many beside it, streamed or whole, and count nothing."""

    async def play(call: ProviderCall) -> None:
        call.bill.input, call.bill.output = PROMPT, 200
        choice = {"index": 0, "finish_reason": "stop"}
        if call.body.get("stream"):
            call.head()
            call.chunk(content="x", **members)
            call.event({"choices": [{**choice, "delta": {}}]})
            call.send("data: [DONE]\n\n")
            return
        call.answer({"choices": [{**choice, "message": {"content": "x", **members}}]})

    return play


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_that_nobody_here_knows_are_no_free_words(hostile, name) -> None:
    """Red before: but for changes of an unknown kind that a client of Messages was streamed."""
    team = f"says {name}"
    for path, stream in product((CHAT, MESSAGES), (False, True)):
        hostile.play("claude", in_messages(*BLOCKS[name]))
        hostile.post(team, path, {"model": "claude", "stream": stream, **ASKED})
    assert len(hostile.judged(team)) == 4


@pytest.mark.parametrize("name", ["tomorrow", "segments", "extra_content"])
def test_words_beside_a_short_known_one_are_no_free_words(hostile, name) -> None:
    """Red before: in one event or answer with a known word, all others below 2,048 bytes."""
    team = f"beside a word {name}"
    for stream in (False, True):
        hostile.play("first", beside(**{name: [{"said": WORDS}]}))
        hostile.post(team, CHAT, {"model": "first", "stream": stream, **ASKED})
    assert len(hostile.judged(team)) == 2
