"""Every form of an Anthropic conversation as chat's messages, and what has no form there."""

import pytest

from gateway.errors import RequestError
from gateway.request.dialects.messages_input import conversation

URL = "https://images.test/a.png"


def text(told: str) -> dict:
    return {"type": "text", "text": told}


def result(content: object = None, **members: object) -> dict:
    return {"type": "tool_result", "tool_use_id": "t1", "content": content, **members}


def image(url: str) -> dict:
    return {"type": "image_url", "image_url": {"url": url}}


def user(content: object) -> dict:
    return {"role": "user", "content": content}


CALL = {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": "é"}}
CALLED = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "t1", "type": "function", "function": {"name": "look", "arguments": '{"at":"é"}'}}
    ],
}
BASE64 = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
SHOWN = image("data:image/png;base64,AAAA")


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([user("hi")], [user("hi")]),
        ([user([text("hi")])], [user("hi")]),
        ([user([text("a"), text("b")])], [user([text("a"), text("b")])]),
        # Turns of one role are one turn.
        ([user("a"), user([text("b")])], [user([text("a"), text("b")])]),
        (
            [user([{"type": "image", "source": BASE64}, text("what?")])],
            [user([SHOWN, text("what?")])],
        ),
        (
            [user([{"type": "image", "source": {"type": "url", "url": URL}}])],
            [user([image(URL)])],
        ),
        (
            [
                user("look"),
                {"role": "assistant", "content": [text("so"), CALL]},
                user([result("seen")]),
            ],
            [
                user("look"),
                {**CALLED, "content": "so"},
                {"role": "tool", "tool_call_id": "t1", "content": "seen"},
            ],
        ),
        # Results stand together behind their calls; their images and what was said follow.
        (
            [
                {"role": "assistant", "content": [CALL]},
                user(
                    [
                        result([text("a"), text("b"), {"type": "image", "source": BASE64}]),
                        result(None, tool_use_id="t2"),
                        result("broken", tool_use_id="t3", is_error=True),
                        text("go on"),
                    ]
                ),
            ],
            [
                CALLED,
                {"role": "tool", "tool_call_id": "t1", "content": "a\nb"},
                {"role": "tool", "tool_call_id": "t2", "content": ""},
                {"role": "tool", "tool_call_id": "t3", "content": "Error:\nbroken"},
                user([SHOWN, text("go on")]),
            ],
        ),
        # Thoughts of earlier turns stay behind.
        (
            [
                user("a"),
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm", "signature": "x"},
                        {"type": "redacted_thinking", "data": "x"},
                        text("b"),
                    ],
                },
                user("c"),
            ],
            [user("a"), {"role": "assistant", "content": "b"}, user("c")],
        ),
        (
            [user("a"), {"role": "system", "content": "be brief"}],
            [user([text("a"), text("<system-reminder>\nbe brief\n</system-reminder>")])],
        ),
        (
            [
                user(
                    [
                        {
                            "type": "document",
                            "title": "T",
                            "source": {"type": "text", "media_type": "text/plain", "data": "d"},
                        },
                        {"type": "document", "source": {"type": "content", "content": [text("e")]}},
                    ]
                )
            ],
            [user([text("T\n\nd"), text("e")])],
        ),
    ],
)
def test_turns(messages: list, expected: list) -> None:
    assert conversation(None, messages).turns.messages() == expected


@pytest.mark.parametrize(
    ("messages", "place"),
    [
        ("hi", "messages"),
        (None, "messages"),
        ([], "messages"),
        ([1], "messages[0]"),
        ([{"content": "x"}], "messages[0].role"),
        ([{"role": "tool", "content": "x"}], "messages[0].role"),
        ([user(None)], "messages[0].content"),
        ([user([{}])], "messages[0].content[0].type"),
        ([user([{"type": "text"}])], "messages[0].content[0].text"),
        ([user([{"type": "search_result"}])], "messages[0].content[0].title"),
        ([user([{"type": "image", "source": {"type": "file"}}])], "messages[0].content[0].source"),
        (
            [user([{"type": "image", "source": {**BASE64, "media_type": "application/pdf"}}])],
            "messages[0].content[0].source.media_type",
        ),
        (
            [user([{"type": "document", "source": {"type": "base64"}}])],
            "messages[0].content[0].source.media_type",
        ),
        ([user([{"type": "audio"}])], "messages[0].content[0]"),
        ([user([result([{"type": 5}])])], "messages[0].content[0].content[0].type"),
        ([user([{"type": "tool_result"}])], "messages[0].content[0].tool_use_id"),
        (
            [{"role": "assistant", "content": [{"type": "server_tool_use"}]}],
            "messages[0].content[0].name",
        ),
        (
            [{"role": "assistant", "content": [{**CALL, "input": "x"}]}],
            "messages[0].content[0].input",
        ),
        ([user("a"), {"role": "assistant", "content": "The answer is"}], "messages[1]"),
    ],
)
def test_what_cannot_be_said_is_refused_by_its_place(messages: object, place: str) -> None:
    with pytest.raises(RequestError) as caught:
        conversation(None, messages)
    assert caught.value.row.status == 400
    assert caught.value.param == place
    assert f"`{place}`" in caught.value.message


@pytest.mark.parametrize(
    ("system", "expected"),
    [
        (None, None),
        ("", None),
        ("be brief", "be brief"),
        ([text("a"), {**text("b"), "cache_control": {"type": "ephemeral"}}], "a\n\nb"),
        ([text("x-anthropic-billing-header: cc_version=2; cch=0a1b"), text("a")], "a"),
    ],
)
def test_system(system: object, expected: str | None) -> None:
    told = [] if expected is None else [{"role": "system", "content": expected}]
    assert conversation(system, [user("hi")]).turns.messages() == [*told, user("hi")]


def test_an_instruction_that_is_no_text_is_refused() -> None:
    with pytest.raises(RequestError, match=r"system\[0\]"):
        conversation([{"type": "image"}], [user("hi")])


MARK = {"cache_control": {"type": "ephemeral"}}


def test_marks_are_kept_where_they_were_and_left_out_where_they_are_not_taken() -> None:
    system = [text("a"), {**text("b"), **MARK}]
    messages = [
        user([text("c"), {**text("d"), **MARK}]),
        {"role": "assistant", "content": [{**text("e"), **MARK}, {**CALL, **MARK}]},
        user([{**result("f"), **MARK}]),
    ]
    found = conversation(system, messages).turns
    call = CALLED["tool_calls"][0]
    assert found.messages(marks=True) == [
        {"role": "system", "content": system},
        user([text("c"), {**text("d"), **MARK}]),
        {
            "role": "assistant",
            "content": [{**text("e"), **MARK}],
            "tool_calls": [{**call, **MARK}],
        },
        {"role": "tool", "content": "f", "tool_call_id": "t1", **MARK},
    ]
    assert found.messages() == [
        {"role": "system", "content": "a\n\nb"},
        user([text("c"), text("d")]),
        {"role": "assistant", "content": "e", "tool_calls": [call]},
        {"role": "tool", "content": "f", "tool_call_id": "t1"},
    ]


def test_members_that_no_target_gets_are_named_wherever_they_stand() -> None:
    messages = [
        {**user([{**text("a"), "x": 1}]), "id": "u", "type": "message"},
        {"role": "assistant", "usage": {"in": 1}, "content": [{**CALL, "x": 1, "caller": {}}]},
        user([{**result("f"), "x": [1], "is_error": False}]),
    ]
    found = conversation(None, messages)
    assert found.left_out == {
        "messages.id", "messages.text.x", "messages.usage", "messages.tool_use.x",
        "messages.tool_result.x",
    }  # fmt: skip
