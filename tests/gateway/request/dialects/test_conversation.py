"""Turns of one role are one message, and results stand where their calls are."""

from gateway.request.dialects.conversation import (
    ConversationBuilder,
    called,
    image_part,
    marked,
    text_part,
)


def test_turns_of_one_role_are_joined() -> None:
    found = ConversationBuilder()
    found.instructed(text_part("a"))
    found.instructed(text_part("b"))
    found.said(text_part("c"))
    found.said(text_part("d"))
    found.answered([text_part("e")], [])
    found.answered([text_part("f")], [called("1", "look", "{}")])
    found.answered([], [called("2", "look", "{}")])
    assert found.told() == [
        {"role": "system", "content": "a\n\nb"},
        {"role": "user", "content": [text_part("c"), text_part("d")]},
        {
            "role": "assistant",
            "content": "ef",
            "tool_calls": [called("1", "look", "{}"), called("2", "look", "{}")],
        },
    ]


def test_images_of_results_follow_all_of_them() -> None:
    found = ConversationBuilder()
    image = image_part("data:image/png;base64,AA", "low")
    found.answered([], [called("1", "look", "{}"), called("2", "look", "{}")])
    found.resulted("1", [text_part("a"), image, text_part("b")])
    found.resulted("2", [])
    expected = [
        {"role": "tool", "tool_call_id": "1", "content": "a\nb"},
        {"role": "tool", "tool_call_id": "2", "content": ""},
        {"role": "user", "content": [image]},
    ]
    assert found.told()[1:] == expected
    assert found.told()[1:] == expected  # looking changes nothing
    assert image["image_url"] == {"url": "data:image/png;base64,AA", "detail": "low"}


def test_an_instruction_on_the_way_stays_where_it_is() -> None:
    found = ConversationBuilder()
    found.said(text_part("a"))
    found.instructed(text_part("b"))
    found.said(text_part("c"))
    found.instructed(text_part("d"))
    roles = [message["role"] for message in found.told()]
    assert roles == ["user", "system", "user", "system"]


def test_who_says_nothing_has_no_turn() -> None:
    found = ConversationBuilder()
    found.said()
    found.instructed()
    found.answered([text_part("")], [])
    assert found.told() == []


def test_a_mark_makes_a_text_a_part() -> None:
    part = marked(text_part("a"), {"cache_control": {"type": "ephemeral"}})
    found = ConversationBuilder()
    found.said(part)
    found.resulted("1", [part])
    user, tool = found.told(marks=True)
    assert user["content"] == [part]
    assert (tool["content"], tool["cache_control"]) == ("a", {"type": "ephemeral"})
    assert [message["content"] for message in found.told()] == ["a", "a"]
    assert marked(text_part("a"), {"cache_control": None}) == text_part("a")
