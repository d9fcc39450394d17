"""Every form of input of the Responses API as chat's messages, and what has no form there."""

import re

import pytest

from gateway.errors import RequestError
from gateway.request.dialects.conversation import image_part, text_part, tool_call
from gateway.request.dialects.responses_input import read_conversation

URL = "data:image/png;base64,AAAA"


def user(content: object) -> dict:
    return {"role": "user", "content": content}


def call(name: str = "1") -> dict:
    return {"type": "function_call", "call_id": name, "name": "look", "arguments": "{}"}


def output(told: object, name: str = "1") -> dict:
    return {"type": "function_call_output", "call_id": name, "output": told}


def message(role: str, *parts: dict) -> dict:
    return {"type": "message", "role": role, "content": list(parts)}


def part(kind: str, **members: object) -> dict:
    return {"type": kind, **members}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("hi", [user("hi")]),
        ([user("hi")], [user("hi")]),
        ([message("user", part("input_text", text="hi"))], [user("hi")]),
        (
            [
                message(
                    "user",
                    part("input_text", text="what?"),
                    part("input_image", image_url=URL, detail="low"),
                    part("input_file", file_data="data:application/pdf;base64,AA", filename="a"),
                    part("input_audio", input_audio={"data": "AA", "format": "wav"}),
                )
            ],
            [
                user(
                    [
                        text_part("what?"),
                        image_part(URL, "low"),
                        {
                            "type": "file",
                            "file": {
                                "file_data": "data:application/pdf;base64,AA",
                                "filename": "a",
                            },
                        },
                        {"type": "input_audio", "input_audio": {"data": "AA", "format": "wav"}},
                    ]
                )
            ],
        ),
        # What an answer's `output` holds is sent back as it is.
        (
            [
                user("a"),
                {"type": "reasoning", "id": "rs_1", "summary": []},
                {
                    **message("assistant", part("output_text", text="so", annotations=[])),
                    "id": "msg_1",
                    "status": "completed",
                },
                {**call("1"), "id": "fc_1", "status": "completed"},
                call("2"),
                output("seen", "1"),
                output([part("input_text", text="b"), part("input_image", image_url=URL)], "2"),
                user("c"),
            ],
            [
                user("a"),
                {
                    "role": "assistant",
                    "content": "so",
                    "tool_calls": [tool_call("1", "look", "{}"), tool_call("2", "look", "{}")],
                },
                {"role": "tool", "tool_call_id": "1", "content": "seen"},
                {"role": "tool", "tool_call_id": "2", "content": "b"},
                user([image_part(URL), text_part("c")]),
            ],
        ),
        (
            [user("a"), message("assistant", part("refusal", refusal="no")), user("b")],
            [user("a"), {"role": "assistant", "content": "no"}, user("b")],
        ),
    ],
)
def test_items(given: object, expected: list) -> None:
    assert read_conversation(None, given).turns.messages() == expected


def test_instructions_and_a_developers_message_are_one() -> None:
    given = [message("developer", part("input_text", text="b")), user("hi")]
    assert read_conversation("a", given).turns.messages() == [
        {"role": "system", "content": "a\n\nb"},
        user("hi"),
    ]


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (None, "input"),
        ([], "input"),
        (5, "input"),
        ([1], "input[0]"),
        ([{"content": "x"}], "input[0].role"),
        ([user(None)], "input[0].content"),
        ([message("tool", part("input_text", text="x"))], "input[0].role"),
        ([message("user", part("input_image", file_id="f"))], "input[0].content[0]"),
        ([message("user", part("input_file", file_url="u"))], "input[0].content[0]"),
        ([message("user", part("video"))], "input[0].content[0]"),
        ([message("assistant", part("input_image", image_url=URL))], "input[0].content[0]"),
        ([{"type": "item_reference", "id": "x"}], "input[0]"),
        ([{"type": "video_call"}, user("x"), {"type": "video"}], "input[2]"),
        ([{"type": "mcp_approval_response"}], "input[0]"),
        ([{**call(), "arguments": {}}], "input[0].arguments"),
        ([output(5)], "input[0].output"),
        ([{"type": "function_call_output", "output": "x"}], "input[0].call_id"),
    ],
)
def test_what_cannot_be_said_is_refused_by_its_place(given: object, place: str) -> None:
    with pytest.raises(RequestError) as caught:
        read_conversation(None, given).turns.messages()
    assert caught.value.row.status == 400
    assert caught.value.param == place


@pytest.mark.parametrize("kind", ["compaction", "compaction_summary"])
def test_a_compaction_that_cannot_be_read_is_a_line_of_the_user(kind: str) -> None:
    """An answer as the first turn is refused by many chat templates."""
    item = {"type": kind, "id": "cmp_1", "encrypted_content": "gAAAAABp"}
    found = read_conversation(None, [item, user("on")])
    (turn,) = found.turns.messages()
    words = kind.replace("_", " ")
    note = f"[A block ({words}) was left out here: it cannot be read.]"
    assert turn == {"role": "user", "content": [text_part(note), text_part("on")]}
    assert found.left_out == {f"input.{kind}"}


def test_parts_of_an_instruction_stay_apart() -> None:
    """Codex sends its permissions and its environment as parts of one message."""
    told = message("developer", part("input_text", text="a"), part("input_text", text="b"))
    (found, *_) = read_conversation(None, [told]).turns.messages()
    assert found == {"role": "system", "content": "a\n\nb"}
    late = read_conversation(None, [user("hi"), told]).turns.messages()
    assert late[-1]["content"][-1]["text"] == "<system-reminder>\na\n\nb\n</system-reminder>"


@pytest.mark.parametrize("before", [[], [user("hi")]])
def test_a_part_of_an_answer_that_nobody_knows_locks_no_session(before: list) -> None:
    """Its client has it from elsewhere, sends it with each turn and cannot take it out."""
    sound = part("output_audio", data="AA", transcript="hm")
    said = message(
        "assistant", part("output_text", text="so"), sound, part("refusal", refusal="no")
    )
    found = read_conversation(None, [*before, said, user("next")])
    told = found.turns.messages()[-2]["content"]
    assert told == "so\n[A block (output audio) was left out here: it cannot be read.]\nno"
    assert found.left_out == {"input.output_audio"}


def test_an_instruction_behind_a_turn_goes_into_the_users() -> None:
    """Many chat templates take no `system` in mid-conversation."""
    found = read_conversation(
        "You are an agent.",
        [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": [{"type": "output_text", "text": "Hello."}]},
            {"role": "developer", "content": "Permissions changed."},
            {"role": "user", "content": "Go on"},
        ],
    ).turns.messages()
    assert [message["role"] for message in found] == ["system", "user", "assistant", "user"]
    assert found[0]["content"] == "You are an agent.\n\nBe brief."
    texts = [part["text"] for part in found[3]["content"]]
    assert texts == ["<system-reminder>\nPermissions changed.\n</system-reminder>", "Go on"]


def test_calls_and_outputs_of_the_clients_tools() -> None:
    patched = {"type": "custom_tool_call", "call_id": "a", "name": "patch", "input": "x",
               "namespace": "crew"}  # fmt: skip
    ran = {"type": "local_shell_call", "id": "lsh_1", "action": {"type": "exec", "command": ["ls"]}}
    found = read_conversation(
        None,
        [
            {"role": "user", "content": "go"},
            patched,
            {"type": "custom_tool_call_output", "call_id": "a",
             "output": [{"type": "input_text", "text": "done"}]},
            {"type": "additional_tools", "role": "developer", "tools": []},
            ran,
            {"type": "local_shell_call_output", "id": "lsh_1", "output": "a b"},
        ],
    ).turns.messages()  # fmt: skip
    assert [message["role"] for message in found] == [
        "user", "assistant", "tool", "assistant", "tool"
    ]  # fmt: skip
    (call,) = found[1]["tool_calls"]
    assert call["function"] == {"name": "crew__patch", "arguments": '{"input":"x"}'}
    assert (found[2]["content"], found[2]["tool_call_id"]) == ("done", "a")
    assert found[3]["tool_calls"][0]["function"]["name"] == "local_shell"
    assert (found[4]["content"], found[4]["tool_call_id"]) == ("a b", "lsh_1")


def test_what_no_target_gets_is_named() -> None:
    """An unknown item that was sent again and again would end its session for good."""
    found = read_conversation(
        None,
        [
            {"role": "user", "content": [{"type": "input_text", "text": "q", "hint": {"a": 1}}]},
            {"type": "reasoning", "id": "rs_1", "summary": []},
            {"type": "program", "code": "x"},
            {**message("assistant", part("output_text", text="a", annotations=[{"url": "u"}])),
             "phase": "commentary", "status": "completed"},
            {**call(), "caller": {"type": "program"}},
            output("x"),
            {"role": "user", "content": "more"},
        ],
    )  # fmt: skip
    assert found.left_out == {
        "input.input_text.hint", "input.reasoning", "input.program", "input.program.code",
        "input.message.phase", "input.output_text.annotations", "input.function_call.caller",
    }  # fmt: skip
    told = found.turns.messages()
    assert told[1]["content"] == "[A block (program) was left out here: it cannot be read.]\na"


@pytest.mark.parametrize(
    ("member", "said"),
    [
        ("file_url", "a file is not fetched here. Send its data in `file_data`."),
        ("file_id", "no file is kept here. Send its data in `file_data`."),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_with_the_way_round(member, said) -> None:
    with pytest.raises(RequestError, match=re.escape(said)):
        read_conversation(None, [message("user", part("input_file", **{member: "u"}))])


def test_what_a_model_left_before_the_users_words_is_not_the_users() -> None:
    """An unknown kind of a model's items stays in a history whatever the user says next."""
    answer = [user("what?"), message("assistant", part("output_text", text="this"))]
    new = part("a_kind_of_tomorrow", id="x", status="completed")
    found = read_conversation(None, [*answer, new, user("next")])
    assert "a kind of tomorrow" in str(found.turns.messages())
    assert "input.a_kind_of_tomorrow" in found.left_out
    for sent in ([*answer, new], [*answer, user("next"), new], [new, user("next")]):
        with pytest.raises(RequestError, match="a_kind_of_tomorrow"):
            read_conversation(None, sent)
