"""Conversations that other models began, as Claude takes them: none of it locks a session."""

import json
import re
from typing import Any

import pytest

from backends.messages_moved import lacks_thought, moved_body

CLAUDE = "claude-sonnet-4-5"
BUDGET = {"type": "enabled", "budget_tokens": 1024}
UNSIGNED = {"type": "thinking", "thinking": "hm", "signature": ""}
SIGNED = {"type": "thinking", "thinking": "hm", "signature": "EqQ"}
TEXT = {"type": "text", "text": "hi"}
USER = {"role": "user", "content": "hi"}


def call(name: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": name, "name": "f", "input": {}}


def result(name: Any) -> dict[str, Any]:
    return {"role": "user", "content": [{"type": "tool_result", "tool_use_id": name}]}


def told(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def body(*messages: Any, model: str = CLAUDE, **members: Any) -> bytes:
    return json.dumps({"model": model, "messages": messages, **members}, indent=1).encode()


def moved(*messages: Any, **members: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    made, ignored = moved_body(body(*messages, **members))
    return json.loads(made), ignored


def test_thoughts_that_nobody_signed_are_left_out() -> None:
    """Claude refuses them by their signature, each time that the client sends them."""
    none = {"type": "thinking", "thinking": "hm", "signature": None}
    made, ignored = moved(
        USER, told(UNSIGNED, TEXT), USER, told(none), USER, told(SIGNED, TEXT), USER
    )
    assert made["messages"] == [USER, told(TEXT), USER, USER, told(SIGNED, TEXT), USER]
    assert ignored == ("messages.thinking",)


@pytest.mark.parametrize("text", ["", "\n\n", " ", "\t \r\n"])
def test_a_text_of_the_models_that_says_nothing_is_left_out(text: str) -> None:
    """Red before: Claude refuses one, each time. Many models say an empty line before a call."""
    blank, shown = {"type": "text", "text": text}, {"type": "text", "text": f"a{text}"}
    made, ignored = moved(
        USER, told(blank, call("c"), blank), result("c"), told(blank), USER, told(shown),
        {"role": "user", "content": [TEXT, blank]},
    )  # fmt: skip
    assert made["messages"] == [
        USER, told(call("c")), result("c"), USER, told(shown),
        {"role": "user", "content": [TEXT, blank]},  # it is the client's own to mend
    ]  # fmt: skip
    assert ignored == ()


@pytest.mark.parametrize("name", ["functions.f:0", "call|1", "a b", "\u00fc", "toolu.1"])
def test_a_calls_name_has_letters_that_claude_takes(name: str) -> None:
    made, ignored = moved(USER, told(call(name), call("toolu_1")), result(name), result("toolu_1"))
    calls, first, second = made["messages"][1:]
    named = calls["content"][0]["id"]
    assert re.fullmatch("[A-Za-z0-9_-]+", named)
    assert first["content"][0]["tool_use_id"] == named
    assert (calls["content"][1]["id"], second["content"][0]["tool_use_id"]) == ("toolu_1",) * 2
    assert ignored == ()


def test_names_that_differ_stay_apart() -> None:
    made, _ = moved(USER, told(call("f:0"), call("f.0"), call("f_0")))
    names = [block["id"] for block in made["messages"][1]["content"]]
    assert len(set(names)) == 3


@pytest.mark.parametrize(
    ("turn", "kept", "ignored"),
    [
        (told(call("c")), False, ("thinking",)),
        (told(TEXT, call("c")), False, ("thinking",)),
        (told(UNSIGNED, call("c")), False, ("messages.thinking", "thinking")),
        (told(SIGNED, call("c")), True, ()),
        (told({"type": "redacted_thinking", "data": "x"}, call("c")), True, ()),
        (told(TEXT), True, ()),
        (told(), True, ()),
        ({"role": "assistant", "content": "hi"}, True, ()),
    ],
)
def test_a_turn_with_tools_goes_on_as_it_began(turn: dict, kept: bool, ignored: tuple) -> None:
    """Claude refuses a budget where that turn did not begin with a thought."""
    made, left = moved(USER, told(call("b")), result("b"), turn, result("c"), thinking=BUDGET)
    assert (made.get("thinking") == BUDGET, left) == (kept, ignored)


@pytest.mark.parametrize(
    ("management", "kept", "ignored"),
    [
        (
            {"edits": [{"type": "clear_thinking_20251015"}, {"type": "clear_tool_uses_20250919"}]},
            {"edits": [{"type": "clear_tool_uses_20250919"}]},
            ("context_management", "thinking"),
        ),
        ({"edits": [{"type": "clear_tool_uses_20250919"}]},) * 2 + (("thinking",),),
        ({"edits": None},) * 2 + (("thinking",),),
        (None, None, ("thinking",)),
    ],
)
def test_without_thinking_no_thoughts_are_cleared(management, kept, ignored: tuple) -> None:
    """Claude refuses such an edit where nothing is thought."""
    asked = {"thinking": BUDGET, "context_management": management}
    made, left = moved(USER, told(call("b")), result("b"), **asked)
    assert (made["context_management"], left) == (kept, ignored)


def test_thinking_without_a_budget_needs_no_thought_before() -> None:
    turns = (USER, told(call("budget_tokens")), result("budget_tokens"))
    asked = body(*turns, thinking={"type": "adaptive"}, note="budget_tokens")
    assert moved_body(asked) == (asked, ())


@pytest.mark.parametrize(
    "asked",
    [
        body(USER, told(UNSIGNED, call("f:0")), result("f:0"), model="kimi-k2", thinking=BUDGET),
        body(USER, told(SIGNED, call("c"), TEXT), result("c"), thinking=BUDGET),
        body(USER, told({"type": "tool_use", "id": "", "input": {"id": "a b"}}), "x", told(5)),
        body(USER, tools=[{"name": "f", "id": "a b"}]),
        b'{"model":"claude","id":"a b","messages":"x"}',
        b'{"model":5,"id":"a b"}',
        b'{"id":"a b"',
        b'["id": "a b"]',
    ],
)
def test_what_needs_no_change_stays_byte_for_byte(asked: bytes) -> None:
    assert moved_body(asked) == (asked, ())


def test_only_the_last_turn_counts() -> None:
    assert lacks_thought([USER, told(call("c")), USER])
    assert not lacks_thought([USER, told(call("c")), USER, told(TEXT), USER])
    assert not lacks_thought([USER, "x"])
