"""Tools of Anthropic's Messages as functions: the client's own by name, the service's refused."""

import json
from typing import Any

import pytest

from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.kinds.chat import read_chat
from gateway.request.dialects.messages import MESSAGES
from gateway.request.dialects.messages_tools import CLIENT_TOOLS, declared_tools, searches_tools

SCHEMA = {"type": "object", "properties": {}}
TOOL = {"name": "look", "input_schema": SCHEMA}
# Each that anthropic 2.11.0 knows and the client runs.
OWN = (
    "bash_20241022", "bash_20250124", "memory_20250818", "text_editor_20241022",
    "text_editor_20250124", "text_editor_20250429", "text_editor_20250728", "computer_20241022",
    "computer_20250124", "computer_20251124",
)  # fmt: skip
SERVICE = (
    "web_search_20250305", "web_search_20260318", "web_fetch_20250910", "code_execution_20250522",
    "advisor_20260301", "mcp_toolset", "browser_toolset_20260801", "computer_toolset_20260801",
    "bash", "bash_", "shell_20250101",
)  # fmt: skip


def decode(messages: list[Any] | None = None, **members: Any) -> tuple[dict[str, Any], Any]:
    turns = messages or [{"role": "user", "content": "hi"}]
    body = {"model": "m", "max_tokens": 5, "messages": turns, **members}
    asked = MESSAGES.decode_request(decode_members(json.dumps(body).encode()))
    read_chat(asked.members, max_n=1, session=None)
    return {name: json.loads(bytes(value)) for name, value in asked.members.items()}, asked


def names(members: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in members.get("tools", ())]


@pytest.mark.parametrize("kind", OWN)
def test_what_the_client_runs_is_a_function_of_its_name(kind: str) -> None:
    family = kind.rpartition("_")[0]
    members, asked = decode(tools=[{"type": kind, "name": "tool_1"}])
    (tool,) = members["tools"]
    form = CLIENT_TOOLS[family]
    assert tool == {
        "type": "function",
        "function": {
            "name": "tool_1", "description": form.description, "parameters": form.parameters
        },
    }  # fmt: skip
    assert asked.ignored == ()


@pytest.mark.parametrize("kind", SERVICE)
def test_what_runs_elsewhere_is_refused_by_its_place(kind: str) -> None:
    with pytest.raises(RequestError) as caught:
        decode(tools=[TOOL, {"type": kind, "name": "x"}])
    assert caught.value.param == "tools[1]"
    assert "Anthropic's own service" in caught.value.message


def test_a_screen_is_described() -> None:
    tool = {"type": "computer_20250124", "name": "computer", "display_width_px": 1024,
            "display_height_px": 768}  # fmt: skip
    members, asked = decode(tools=[tool])
    told = members["tools"][0]["function"]["description"]
    assert told.endswith("display_width_px: 1024. display_height_px: 768.")
    assert asked.ignored == ()


def test_a_search_for_tools_is_left_out_and_named() -> None:
    search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    members, asked = decode(tools=[search, {**TOOL, "defer_loading": True}])
    assert names(members) == ["look"]
    assert asked.ignored == ("tools.defer_loading", "tools.tool_search_tool")
    assert not searches_tools([TOOL, {"type": 5}], [("messages[0]", TOOL)])
    assert searches_tools(None, [("messages[0]", search)])


def addition(tool: dict[str, Any], kind: str = "tool_addition") -> dict[str, Any]:
    return {"role": "system", "content": [{"type": kind, "tool": tool}]}


def test_tools_come_and_go_in_a_conversation() -> None:
    user = {"role": "user", "content": "hi"}
    more = {"type": "tool_definition", "definition": {**TOOL, "name": "more"}}
    gone = addition({"type": "tool_reference", "name": "look"}, "tool_removal")
    back = addition({"type": "tool_reference", "name": "look"})
    assert names(decode([user, addition(more)], tools=[TOOL])[0]) == ["look", "more"]
    assert names(decode([user, addition(more), gone], tools=[TOOL])[0]) == ["more"]
    assert names(decode([user, gone, back], tools=[TOOL])[0]) == ["look"]
    assert names(decode([user, gone], tools=[TOOL])[0]) == []
    served = {"type": "mcp_toolset_reference", "server_name": "s"}
    search = {"type": "web_search_20250305", "name": "web_search"}
    for tool in (served, {"type": "tool_definition", "definition": search}):
        members, asked = decode([user, addition(tool)], tools=[TOOL])
        assert (names(members), asked.ignored) == (["look"], ("messages.tool_addition",))
    with pytest.raises(RequestError, match=r"messages\[1\].content\[0\].tool.definition.input_s"):
        decode([user, addition({**more, "definition": {"name": "x"}})])


def test_marks_stay_with_their_tool() -> None:
    (tool,) = declared_tools([{**TOOL, "cache_control": {"type": "ephemeral"}}], [], set())
    assert tool.marked == {**tool.function, "cache_control": {"type": "ephemeral"}}
    assert tool.left_out == ()
