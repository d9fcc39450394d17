"""Tools as chat is told them: every place that declares one, and every way to choose."""

import json

import pytest

from gateway.errors import RequestError
from gateway.http.body import decode_members, encode_raw
from gateway.request.dialects.responses_tools import (
    CalledTool,
    declared_tools,
    flat_name,
    tool_members,
)

LOOK = {"type": "function", "name": "look", "parameters": {"type": "object"}}
PATCH = {"type": "custom", "name": "patch"}
CREW = {"type": "namespace", "name": "crew", "description": "", "tools": [LOOK, PATCH]}
BROUGHT = {"type": "additional_tools", "role": "developer", "tools": [CREW]}
SEARCH = {"type": "web_search"}


def members(**asked):
    return decode_members(json.dumps({"model": "m", **asked}).encode())


def names(*tools, items=None) -> dict[str, CalledTool]:
    found = declared_tools(members(tools=list(tools)), items)
    return {tool.function["name"]: tool.origin for tool in found}


def told(tools, choice) -> tuple[list[str], object]:
    asked = members(tools=tools, tool_choice=choice)
    found = tool_members(asked, declared_tools(asked, None))
    offered = [tool["function"]["name"] for tool in json.loads(bytes(found["tools"]))]
    return offered, json.loads(bytes(found["tool_choice"]))


def test_every_tool_of_the_client_is_declared() -> None:
    shell = {"type": "shell"}
    assert names(LOOK, PATCH, shell, CREW) == {
        "look": CalledTool("function", "look"),
        "patch": CalledTool("custom", "patch"),
        "shell": CalledTool("shell", "shell"),
        "crew__look": CalledTool("function", "look", "crew"),
        "crew__patch": CalledTool("custom", "patch", "crew"),
    }


def test_items_of_the_input_bring_tools() -> None:
    searched = {"type": "tool_search_output", "call_id": "c", "tools": [LOOK]}
    assert names(items=[BROUGHT, "x", searched]).keys() == {"crew__look", "crew__patch", "look"}
    assert names(LOOK, items="text").keys() == {"look"}


def test_a_search_of_the_web_is_left_out_beside_others_and_refused_alone() -> None:
    assert names(LOOK, SEARCH).keys() == {"look"}
    assert names(SEARCH, items=[BROUGHT]).keys() == {"crew__look", "crew__patch"}
    with pytest.raises(RequestError, match="OpenAI's own service") as raised:
        names(SEARCH)
    assert raised.value.param == "tools[0]"


def test_a_search_for_tools_is_the_clients_or_has_nothing_to_find() -> None:
    assert names(LOOK, {"type": "tool_search"}).keys() == {"look"}
    client = {"type": "tool_search", "execution": "client"}
    assert names(client).keys() == {"tool_search"}


@pytest.mark.parametrize("kind", [5, {}, []])
@pytest.mark.parametrize("inside", [False, True])
def test_a_type_that_is_no_name_is_refused_by_its_place(kind, inside: bool) -> None:
    tool = {"type": kind, "name": "f", "parameters": {}}
    tools = [{"type": "namespace", "name": "n", "tools": [tool]}] if inside else [tool]
    with pytest.raises(RequestError) as caught:
        declared_tools({"tools": encode_raw(tools)}, [])
    assert caught.value.param == f"tools[0]{'.tools[0]' if inside else ''}.type"


@pytest.mark.parametrize("kind", ["mcp", "file_search", "code_interpreter", "image_generation"])
def test_what_runs_at_openai_is_refused_by_its_place(kind) -> None:
    with pytest.raises(RequestError) as raised:
        names(LOOK, {"type": kind})
    assert raised.value.param == "tools[1]"


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        ({"type": "function", "name": "look"}, "look"),
        ({"type": "function", "name": "look", "namespace": "crew"}, "crew__look"),
        ({"type": "custom", "name": "patch"}, "crew__patch"),
        ({"type": "shell"}, "shell"),
        ({"type": "function", "name": "nobody"}, "nobody"),
    ],
)
def test_a_choice_of_one_tool(choice: dict, name: str) -> None:
    offered, chosen = told([LOOK, CREW, {"type": "shell"}], choice)
    assert len(offered) == 4
    assert chosen == {"type": "function", "function": {"name": name}}


def test_a_choice_among_some() -> None:
    allowed = {
        "type": "allowed_tools", "mode": "required",
        "tools": [{"type": "custom", "name": "patch"}, {"type": "shell"}, {"type": "mcp"}],
    }  # fmt: skip
    assert told([LOOK, PATCH, {"type": "shell"}], allowed) == (["patch", "shell"], "required")
    space = {"type": "allowed_tools", "tools": [{"type": "namespace", "name": "crew"}]}
    assert told([LOOK, CREW], space) == (["crew__look", "crew__patch"], "auto")
    assert told([LOOK], "none") == (["look"], "none")


@pytest.mark.parametrize(
    ("choice", "param"),
    [
        ({"type": "custom", "name": "nobody"}, "tool_choice"),
        ({"type": "mcp", "server_label": "x"}, "tool_choice"),
        ({"type": "allowed_tools", "tools": [{"type": "mcp"}]}, "tool_choice.tools"),
        ({"type": "allowed_tools", "tools": [{"type": "custom", "name": "n"}]},
         "tool_choice.tools[0]"),
        ({"type": "function"}, "tool_choice.name"),
        (5, "tool_choice"),
    ],
)  # fmt: skip
def test_a_choice_of_what_is_not_offered(choice, param: str) -> None:
    with pytest.raises(RequestError) as raised:
        told([LOOK, PATCH], choice)
    assert raised.value.param == param


def test_without_tools_there_is_no_choice() -> None:
    assert tool_members(members(tool_choice="auto"), []) == {}
    assert flat_name(None, "a") == "a"


def test_what_a_declaration_says_and_no_target_gets_is_named() -> None:
    skills = {"type": "local", "skills": [{"name": "s"}]}
    tools = [
        SEARCH,
        {**LOOK, "defer_loading": True},
        {**PATCH, "allowed_callers": ["x"], "format": {"type": "text"}},
        {"type": "shell", "environment": skills},
        {"type": "local_shell", "environment": {"type": "local"}},
        {**CREW, "description": "of a crew"},
    ]
    found = declared_tools(members(tools=tools), None)
    assert found.left_out == {
        "tools.web_search", "tools.defer_loading", "tools.allowed_callers", "tools.environment",
        "tools.namespace.description",
    }  # fmt: skip


@pytest.mark.parametrize("kind", ["container_auto", "container_reference"])
@pytest.mark.parametrize("where", ["tools", "input"])
def test_a_shell_in_a_container_of_openais_is_not_the_clients(kind: str, where: str) -> None:
    """Its client waits for output that OpenAI makes, and would run none of the calls."""
    shell = {"type": "shell", "environment": {"type": kind}}
    brought = [{**BROUGHT, "tools": [LOOK, shell]}]
    asked = members(tools=[LOOK, shell]) if where == "tools" else members()
    with pytest.raises(RequestError, match="OpenAI's own service") as raised:
        declared_tools(asked, brought if where == "input" else None)
    place = "tools[1]" if where == "tools" else "input[0].tools[1]"
    assert raised.value.param == f"{place}.environment"


def test_a_model_is_told_the_size_of_the_screen() -> None:
    screen = {"type": "computer_use_preview", "display_width": 1024, "display_height": 768}
    (tool,) = declared_tools(members(tools=[screen]), None)
    assert tool.function["description"].endswith("The screen has 1024 x 768 pixels.")
    assert not tool.left_out
