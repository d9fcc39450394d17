"""Turns of one role are one message, and results stand where their calls are."""

import pytest

from gateway.request.dialects.conversation import (
    ConversationBuilder,
    image_part,
    text_part,
    tool_call,
    with_cache_mark,
)


def test_turns_of_one_role_are_joined() -> None:
    found = ConversationBuilder()
    found.add_instruction(text_part("a"))
    found.add_instruction(text_part("b"))
    found.add_user(text_part("c"))
    found.add_user(text_part("d"))
    found.add_assistant([text_part("e")], [])
    found.add_assistant([text_part("f")], [tool_call("1", "look", "{}")])
    found.add_assistant([], [tool_call("2", "look", "{}")])
    assert found.messages() == [
        {"role": "system", "content": "a\n\nb"},
        {"role": "user", "content": [text_part("c"), text_part("d")]},
        {
            "role": "assistant",
            "content": "e\n\nf",
            "tool_calls": [tool_call("1", "look", "{}"), tool_call("2", "look", "{}")],
        },
    ]


@pytest.mark.parametrize(
    ("said", "whole"),
    [
        (["One.", "Two."], "One.\n\nTwo."),
        (["One.\n", "Two."], "One.\nTwo."),
        (["One.", "\nTwo."], "One.\nTwo."),
        (["One.", "", "Two."], "One.\n\nTwo."),
    ],
)
def test_separate_messages_of_the_model_stay_apart(said: list[str], whole: str) -> None:
    """Glued together, the last word of one and the first of the next would be one word."""
    found = ConversationBuilder()
    for words in said:
        found.add_assistant([text_part(words)], [])
    assert found.messages() == [{"role": "assistant", "content": whole}]


def test_texts_of_one_message_are_one_text() -> None:
    found = ConversationBuilder()
    found.add_assistant([text_part("an"), text_part("swer")], [])
    assert found.messages() == [{"role": "assistant", "content": "answer"}]


def test_images_of_results_follow_all_of_them() -> None:
    found = ConversationBuilder()
    image = image_part("data:image/png;base64,AA", "low")
    found.add_assistant([], [tool_call("1", "look", "{}"), tool_call("2", "look", "{}")])
    found.add_tool_result("1", [text_part("a"), image, text_part("b")])
    found.add_tool_result("2", [])
    expected = [
        {"role": "tool", "tool_call_id": "1", "content": "a\nb"},
        {"role": "tool", "tool_call_id": "2", "content": ""},
        {"role": "user", "content": [image]},
    ]
    assert found.messages()[1:] == expected
    assert found.messages()[1:] == expected  # looking changes nothing
    assert image["image_url"] == {"url": "data:image/png;base64,AA", "detail": "low"}


def test_an_instruction_on_the_way_stays_where_it_is() -> None:
    found = ConversationBuilder()
    found.add_user(text_part("a"))
    found.add_instruction(text_part("b"))
    found.add_user(text_part("c"))
    found.add_instruction(text_part("d"))
    roles = [message["role"] for message in found.messages()]
    assert roles == ["user", "system", "user", "system"]


def test_who_says_nothing_has_no_turn() -> None:
    found = ConversationBuilder()
    found.add_user()
    found.add_instruction()
    found.add_assistant([text_part("")], [])
    assert found.messages() == []


def test_a_mark_makes_a_text_a_part() -> None:
    part = with_cache_mark(text_part("a"), {"cache_control": {"type": "ephemeral"}})
    found = ConversationBuilder()
    found.add_user(part)
    found.add_tool_result("1", [part])
    user, tool = found.messages(marks=True)
    assert user["content"] == [part]
    assert (tool["content"], tool["cache_control"]) == ("a", {"type": "ephemeral"})
    assert [message["content"] for message in found.messages()] == ["a", "a"]
    assert with_cache_mark(text_part("a"), {"cache_control": None}) == text_part("a")
