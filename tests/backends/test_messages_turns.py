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
        (
            {"type": "file", "file": {"file_data": "data:text/csv;base64,YTti", "filename": "a"}},
            {
                "type": "document", "title": "a",
                "source": {"type": "text", "media_type": "text/plain", "data": "a;b"},
            },
        ),
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
        ({"role": "user", "content": [
            {"type": "file", "file": {"file_data": "data:text/csv;base64,/w=="}}
        ]}, "messages[0].content[0]"),
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


SOUND = {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}}
SHEET = {"type": "file", "file": {"file_data": "data:application/msword;base64,AA"}}
HEARD = {"role": "user", "content": [SOUND, SHEET, {"type": "text", "text": "hear"}]}
ANSWER = {"role": "assistant", "content": "heard"}
RESULT = {"role": "tool", "tool_call_id": "c", "content": [SOUND]}
NEXT = {"role": "user", "content": "next"}
LEFT = "[A part (input audio) was left out: it cannot be read.]"


@pytest.mark.parametrize(
    "after",
    [[ANSWER, NEXT], [NEXT], [ANSWER, RESULT], [ANSWER, RESULT, NEXT], [ANSWER, NEXT, ANSWER]],
)  # fmt: skip
def test_a_part_without_a_form_locks_no_session(after: list[dict[str, Any]]) -> None:
    """Clients send it again with each later turn, and cannot take it out."""
    turns = MessagesTurns.read([HEARD, *after])
    first = turns.messages[0]["content"][:3]
    assert first == [
        text(LEFT), text("[A part (file) was left out: it cannot be read.]"), text("hear")
    ]  # fmt: skip
    assert turns.ignored == {"messages.input_audio", "messages.file"}


@pytest.mark.parametrize("before", [[], [ANSWER], [NEXT, ANSWER], [NEXT]])
def test_a_part_that_was_just_said_is_refused(before: list[dict[str, Any]]) -> None:
    with pytest.raises(NoMessagesForm) as refused:
        MessagesTurns.read([*before, HEARD])
    assert refused.value.member == f"messages[{len(before)}].content[0]"


def test_a_refusal_is_what_the_model_said() -> None:
    """Red before: SDKs send a message back as it came, and the model's turn was left out."""
    refused = {"role": "assistant", "content": None, "refusal": "I cannot."}
    said = ({"role": "user", "content": words} for words in "ab")
    found = MessagesTurns.read([next(said), refused, next(said)])
    assert [turn["content"] for turn in found.messages] == [
        [text("a")], [text("I cannot.")], [text("b")]
    ]  # fmt: skip
    assert not found.ignored


def test_a_late_instruction_says_its_words_alone() -> None:
    picture = {"type": "image_url", "image_url": "https://x.example/a.png"}
    late = {"role": "developer", "content": [picture, text("Hurry.")]}
    turns = MessagesTurns.read([NEXT, ANSWER, late, NEXT])
    said = turns.messages[-1]["content"]
    assert said == [text("<system-reminder>\nHurry.\n</system-reminder>"), text("next")]
    assert turns.ignored == {"messages.image_url"}


@pytest.mark.parametrize("blank", ["", "\n\n", "  ", [text("\n")], [text(" "), text("")]])
def test_texts_that_say_nothing_are_left_out(blank: Any) -> None:
    """Red before: the API refuses blanks, and many models say an empty line before a call."""
    turns = MessagesTurns.read([
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": blank, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
        {"role": "assistant", "content": blank},
        {"role": "user", "content": blank},
    ])  # fmt: skip
    (call,) = turns.messages[1]["content"]
    assert call["type"] == "tool_use"
    assert len(turns.messages) == 3
    assert [block["type"] for block in turns.messages[2]["content"]] == ["tool_result"]


def test_results_stand_before_what_the_user_said_meanwhile() -> None:
    """Red before: the API finds no result behind the call, and refuses the conversation."""
    turns = MessagesTurns.read([
        {"role": "assistant", "tool_calls": [CALL, {**CALL, "id": "c2"}]},
        {"role": "tool", "tool_call_id": "c1", "content": "one"},
        {"role": "user", "content": "hurry"},
        {"role": "tool", "tool_call_id": "c2", "content": "two"},
    ])  # fmt: skip
    results = [block.get("tool_use_id") for block in turns.messages[1]["content"]]
    assert results == ["c1", "c2", None]


def test_a_call_of_a_custom_tool_has_its_text_as_input() -> None:
    call = {"id": "c", "type": "custom", "custom": {"name": "run", "input": "ls"}}
    told = MessagesTurns.read([{"role": "assistant", "tool_calls": [call]}])
    block = {"type": "tool_use", "id": "c", "name": "run", "input": {"input": "ls"}}
    assert told.messages[0]["content"] == [block]


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


def test_a_call_in_the_first_form_is_one_with_its_result() -> None:
    turns = MessagesTurns.read([
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "42"},
    ])  # fmt: skip
    assert turns.messages[1:] == [
        {"role": "assistant", "content": [
            {"type": "tool_use", "id": "call_2", "name": "f", "input": {}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "call_2", "content": "42"},
        ]},
    ]  # fmt: skip
    assert turns.ignored == set()
