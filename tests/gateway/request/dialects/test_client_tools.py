"""Each tool that the client runs: declared as a function, called, and heard in a history."""

import json

import pytest

from gateway.errors import RequestError
from gateway.request.dialects.client_tools import (
    CLIENT_TOOLS,
    CUSTOM,
    call_arguments,
    call_members,
    custom_input,
    function_of,
    output_parts,
)

GRAMMAR = {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"}
CALLS = {
    "shell": (
        {"commands": ["ls", "pwd"], "timeout_ms": 5},
        {"action": {"commands": ["ls", "pwd"], "timeout_ms": 5, "max_output_length": None}},
    ),
    "local_shell": (
        {"command": ["ls", "-l"], "working_directory": "/"},
        {"action": {"type": "exec", "command": ["ls", "-l"], "env": {}, "working_directory": "/"}},
    ),
    "apply_patch": (
        {"type": "create_file", "path": "a", "diff": "+x"},
        {"operation": {"type": "create_file", "path": "a", "diff": "+x"}},
    ),
    "computer": (
        {"actions": [{"type": "click", "x": 1, "y": 2}]},
        {"actions": [{"type": "click", "x": 1, "y": 2}], "pending_safety_checks": []},
    ),
    "computer_use_preview": (
        {"type": "wait"},
        {"action": {"type": "wait"}, "pending_safety_checks": []},
    ),
    "tool_search": ({"query": "x"}, {"arguments": {"query": "x"}, "execution": "client"}),
}


@pytest.mark.parametrize("kind", CLIENT_TOOLS)
def test_a_call_is_what_the_model_wrote_and_is_heard_as_that_again(kind: str) -> None:
    written, members = CALLS[kind]
    item = call_members(kind, json.dumps(written))
    assert item == {"type": CLIENT_TOOLS[kind].call, **members}
    heard = call_arguments({**item, "call_id": "c"}, "input[0]")
    assert heard is not None
    name, arguments = heard
    assert name == kind
    assert call_members(kind, arguments) == item


@pytest.mark.parametrize("kind", CLIENT_TOOLS)
def test_a_call_that_is_no_json_still_has_its_form(kind: str) -> None:
    for written in ("", "ls -l", "[1]", '{"commands": 5}'):
        item = call_members(kind, written)
        assert item["type"] == CLIENT_TOOLS[kind].call
        assert CLIENT_TOOLS[kind].member in item


@pytest.mark.parametrize("kind", CLIENT_TOOLS)
def test_each_is_declared_with_a_schema(kind: str) -> None:
    function = function_of({"type": kind}, "tools[0]")
    assert function["name"] == kind
    assert function["parameters"]["type"] == "object"
    own = function_of({"type": kind, "description": "Mine.", "parameters": {"a": 1}}, "tools[0]")
    assert (own["description"], own["parameters"]) == ("Mine.", {"a": 1})


def test_a_custom_tool_takes_one_text_and_tells_its_grammar() -> None:
    tool = {"type": CUSTOM, "name": "patch", "description": "Edit.", "format": GRAMMAR}
    function = function_of(tool, "tools[0]")
    assert function["name"] == "patch"
    assert function["description"].startswith("Edit.")
    assert "start: /.+/" in function["description"]
    assert "lark" in function["description"]
    assert function["parameters"]["required"] == ["input"]
    plain = function_of({"type": CUSTOM, "name": "say", "format": {"type": "text"}}, "tools[0]")
    assert plain["description"] == ""
    for wrong in (
        {"name": 5},
        {"name": "a", "format": 5},
        {"name": "a", "format": {"type": "grammar"}},
    ):
        with pytest.raises(RequestError):
            function_of({"type": CUSTOM, **wrong}, "tools[0]")


@pytest.mark.parametrize(
    ("written", "told"),
    [('{"input": "a\\nb"}', "a\nb"), ("plain", "plain"), ('{"x": 1}', '{"x": 1}'), ("", "")],
)
def test_the_input_of_a_custom_tool(written: str, told: str) -> None:
    assert custom_input(written) == told


def test_a_custom_call_in_a_history() -> None:
    item = {"type": "custom_tool_call", "name": "patch", "input": 'a"b'}
    assert call_arguments(item, "input[0]") == ("patch", '{"input":"a\\"b"}')
    assert call_arguments({"type": "message"}, "input[0]") is None
    with pytest.raises(RequestError):
        call_arguments({"type": "custom_tool_call", "name": "patch"}, "input[0]")


@pytest.mark.parametrize(
    ("item", "texts"),
    [
        ({"type": "local_shell_call_output", "output": "hi"}, ["hi"]),
        (
            {"type": "shell_call_output", "output": [{"stdout": "a", "stderr": ""}]},
            ['[{"stdout":"a","stderr":""}]'],
        ),
        ({"type": "apply_patch_call_output", "status": "failed", "output": "no"}, ["failed\nno"]),
        ({"type": "apply_patch_call_output"}, ["completed"]),
        (
            {"type": "tool_search_output", "tools": [{"name": "a"}, {"type": "shell"}]},
            ['["a","shell"]'],
        ),
    ],
)
def test_what_calls_came_to(item: dict, texts: list[str]) -> None:
    parts = output_parts(item, "input[0]")
    assert parts is not None
    assert [part["text"] for part in parts] == texts


def test_a_screenshot_is_shown() -> None:
    output = {"type": "computer_screenshot", "image_url": "data:image/png;base64,AA"}
    parts = output_parts({"type": "computer_call_output", "output": output}, "input[0]")
    assert parts is not None
    assert parts[1]["image_url"]["url"] == output["image_url"]
    assert output_parts({"type": "message"}, "input[0]") is None
    with pytest.raises(RequestError, match="image_url"):
        output_parts({"type": "computer_call_output", "output": {"file_id": "f"}}, "input[0]")
