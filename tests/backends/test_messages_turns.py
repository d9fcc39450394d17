"""Chat's conversation as turns: nothing is lost, and no turn follows one of its own role."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.messages_turns import MessagesTurns, NoMessagesForm, mark_of

MARK = {"type": "ephemeral"}
CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": words, **more}


def test_a_conversation_with_tools() -> None:
    turns = MessagesTurns.read([
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [text("Be kind.", cache_control=MARK)]},
        {"role": "user", "content": "hi", "cache_control": MARK},
        {"role": "assistant", "content": "I look.", "tool_calls": [CALL], "thinking_blocks": [
            {"type": "thinking", "thinking": "hm", "signature": "x"},
        ]},
        {"role": "tool", "tool_call_id": "c1", "content": "found", "cache_control": MARK},
        {"role": "system", "content": "Hurry."},
        {"role": "user", "content": ""},
    ])  # fmt: skip
    assert turns.system == [text("Be brief."), text("Be kind.", cache_control=MARK)]
    assert turns.messages == [
        {"role": "user", "content": [text("hi", cache_control=MARK)]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "x"}, text("I look."),
            {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
        ]},
        {"role": "user", "content": [
            {
                "type": "tool_result", "tool_use_id": "c1", "content": "found",
                "cache_control": MARK,
            },
            text("<system-reminder>\nHurry.\n</system-reminder>"),
        ]},
    ]  # fmt: skip
    assert mark_of({}) == {}


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "aGk="},
            },
        ),
        (
            {"type": "image_url", "image_url": "https://x.example/a.png"},
            {"type": "image", "source": {"type": "url", "url": "https://x.example/a.png"}},
        ),
        (
            {"type": "file", "file": {
                "filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk=",
            }},
            {
                "type": "document", "title": "a.pdf",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "aGk="},
            },
        ),
        ({"type": "refusal", "refusal": "no"}, text("no")),
    ],
)  # fmt: skip
def test_parts_become_blocks(part: dict, block: dict) -> None:
    told = MessagesTurns.read([{"role": "user", "content": [{**part, "cache_control": MARK}]}])
    assert told.messages[0]["content"] == [{**block, "cache_control": MARK}]


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ({"role": "user", "content": [{"type": "input_audio"}]}, "messages[0].content[0]"),
        ({"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]},
         "messages[0].content[0]"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,x"}}]},
         "messages[0].content[0]"),
        ({"role": "user", "content": 5}, "messages[0].content"),
        ({"role": "function", "content": "x"}, "messages[0].role"),
        ({"role": "assistant", "tool_calls": [{"type": "custom"}]}, "messages[0].tool_calls[0]"),
        ("hi", "messages[0]"),
    ],
)  # fmt: skip
def test_what_has_no_form_is_named(message: Any, place: str) -> None:
    with pytest.raises(NoMessagesForm) as refused:
        MessagesTurns.read([message])
    assert refused.value.member == place
    assert f"`{place}`" in str(refused.value)


@pytest.mark.parametrize(
    ("arguments", "given_input"),
    [
        ("", {}),
        (None, {}),
        ("{", {"invalid_arguments": "{"}),
        ("[1]", {"invalid_arguments": "[1]"}),
    ],
)  # fmt: skip
def test_odd_arguments_are_shown_as_they_were(arguments: Any, given_input: dict) -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": arguments}}
    told = MessagesTurns.read([{"role": "assistant", "tool_calls": [call]}])
    assert told.messages[0]["content"][0]["input"] == given_input


@given(st.lists(st.tuples(st.sampled_from(("system", "user", "assistant", "tool")),
                          st.text(max_size=5)), max_size=8))  # fmt: skip
def test_roles_take_turns_and_no_word_is_lost(said: list[tuple[str, str]]) -> None:
    turns = MessagesTurns.read([
        {"role": role, "content": words, "tool_call_id": "c"} for role, words in said
    ])  # fmt: skip
    roles = [turn["role"] for turn in turns.messages]
    assert all(a != b for a, b in pairwise(roles))
    told = str(turns.system) + str(turns.messages)
    assert all(repr(words)[1:-1] in told for _, words in said if words.isalnum())
