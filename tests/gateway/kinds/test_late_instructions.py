"""Instructions behind the first turn, told in a form that every chat template takes."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.kinds.late_instructions import may_instruct_late, move_instructions

CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]}
RESULT = {"role": "tool", "content": "r", "tool_call_id": "c"}
PART = {"type": "image_url", "image_url": {"url": "https://x/y.png"}}


def told(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def moved(*messages: dict[str, Any]) -> list[dict[str, Any]] | None:
    text = json.dumps(messages).encode()
    answer = move_instructions(text) if may_instruct_late(text) else None
    return None if answer is None else json.loads(bytes(answer))


@pytest.mark.parametrize(
    ("messages", "asked"),
    [
        ([told("user", "a")], None),
        ([told("system", "s"), told("user", "a")], None),
        ([told("user", 'is "system" a role}?')], None),
        (
            [told("system", "s"), told("developer", "t"), told("user", "a")],
            [told("system", "s\n\nt"), told("user", "a")],
        ),
        (
            [told("system", "s"), told("user", "a"), told("assistant", "b"),
             told("developer", "new"), told("user", "c")],
            [told("system", "s"), told("user", "a"), told("assistant", "b"),
             told("user", "new\n\nc")],
        ),
        ([told("user", "a"), told("system", "s")], [told("user", "a\n\ns")]),
        (
            [told("user", "a"), CALL, told("system", "s"), RESULT, told("assistant", "b")],
            [told("user", "a"), CALL, RESULT, told("user", "s"), told("assistant", "b")],
        ),
        ([told("user", "a"), CALL, RESULT, told("system", "s")],
         [told("user", "a"), CALL, RESULT, told("user", "s")]),
        ([told("user", [PART]), told("system", "s")],
         [told("user", [PART, {"type": "text", "text": "s"}])]),
        ([told("user", "a"), told("system", None)], None),
        ([told("user", "a"), {"role": "system"}], None),
    ],
)  # fmt: skip
def test_later_instructions_stand_in_the_users_turn(messages, asked) -> None:
    assert moved(*messages) == asked


@pytest.mark.parametrize(
    ("roles", "late"),
    [(["user", "system"], True), (["user", "developer", "user"], True), (["system", "user"], False),
     (["user"], False), ([], False)],
)  # fmt: skip
def test_known_roles_tell_it_without_a_search(roles, late) -> None:
    messages = [told(role, 'is "system" a role}?') for role in roles]
    assert may_instruct_late(json.dumps(messages).encode(), roles) is late


@pytest.mark.parametrize("text", [b"{}", b"[1]", b"[", b'["a}","system"]', b"\xff"])
def test_what_is_no_conversation_stays(text: bytes) -> None:
    assert move_instructions(text) is None


ROLES = st.sampled_from(["system", "developer", "user", "assistant", "call"])


@given(st.lists(ROLES, max_size=8))
def test_nothing_is_lost_and_templates_are_content(roles: list[str]) -> None:
    messages: list[dict[str, Any]] = []
    for number, role in enumerate(roles):
        word = f"<{number}>"
        messages += [{**CALL, "content": word}, RESULT] if role == "call" else [told(role, word)]
    answer = moved(*messages)
    if answer is None:
        assert not any(item["role"] in ("system", "developer") for item in messages[1:])
        return
    words = " ".join(item["content"] for item in answer)
    assert all(words.count(f"<{number}>") == 1 for number in range(len(roles)))
    assert not any(item["role"] in ("system", "developer") for item in answer[1:])
    results = [after for before, after in pairwise(answer) if "tool_calls" in before]
    assert all(item["role"] == "tool" for item in results)


def test_a_role_that_is_no_word_is_the_engines_to_refuse() -> None:
    """Red before: a list has no hash, and the request was a 500."""
    odd = {"role": [], "content": "c"}
    assert odd in (moved(told("user", "a"), told("system", "b"), odd) or [odd])
