"""Whatever a client nests into its body is understood or refused by its place, never a failure."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.kinds.chat import read_chat
from gateway.request.dialects.client_tools import CLIENT_TOOLS
from gateway.request.dialects.messages import MESSAGES
from gateway.request.dialects.responses import RESPONSES

ODD: Any = st.sampled_from((None, True, 0, 1.5, "", "x", [], {}, [[]], [{}], {"x": []}, [None]))
TYPES = (
    *CLIENT_TOOLS,
    *(tool.call for tool in CLIENT_TOOLS.values()),
    *(tool.output for tool in CLIENT_TOOLS.values()),
    "additional_tools", "allowed_tools", "any", "auto", "base64", "compaction", "computer_use",
    "content", "custom", "custom_tool_call", "custom_tool_call_output", "document", "function",
    "function_call", "function_call_output", "grammar", "image", "input_audio", "input_file",
    "input_image", "input_text", "item_reference", "json_schema", "message", "namespace",
    "output_text", "reasoning", "refusal", "search_result", "text", "thinking", "tool",
    "tool_reference", "tool_result", "tool_search_output", "tool_use", "url", "web_search",
    "bash_20250124", "browser_state", "computer_20251124", "container_upload", "file",
    "mcp_tool_result", "mcp_tool_use", "server_tool_use", "tool_addition", "tool_definition",
    "tool_removal", "web_fetch_tool_result", "web_search_tool_result",
)  # fmt: skip
MEMBERS = (
    "action", "actions", "arguments", "call_id", "content", "data", "definition", "description",
    "detail", "edits", "execution", "file_data", "filename", "format", "id", "image_url", "input",
    "input_audio", "input_schema", "is_error", "media_type", "mode", "name", "namespace",
    "operation", "output", "parameters", "refusal", "schema", "source", "status", "strict",
    "summary", "text", "title", "tool_use_id", "tools", "url",
    "clear_at", "context", "error_code", "file_id", "lines", "output_config", "return_code",
    "state_changes", "stdout", "tabs", "tool", "tool_changes", "tool_name", "tool_references",
)  # fmt: skip
ROLES = st.sampled_from(("user", "assistant", "system", "developer", "tool"))


def typed(inner: Any) -> Any:
    """An object as both dialects have them: a form, a role, and members of any value."""
    members = st.dictionaries(st.sampled_from(MEMBERS), inner | ODD, max_size=5)
    heads = st.fixed_dictionaries(
        {}, optional={"type": st.sampled_from(TYPES) | ODD, "role": ROLES | ODD}
    )
    return st.builds(lambda head, rest: {**rest, **head}, heads, members)


NESTED = st.recursive(ODD, lambda inner: typed(inner) | st.lists(typed(inner), max_size=3))
LISTS = st.lists(typed(NESTED), max_size=3) | ODD
OBJECTS = typed(NESTED) | ODD


def read(dialect: Any, body: dict[str, Any]) -> None:
    """Anything but a refusal is a failure of the gateway."""
    with suppress(RequestError):
        heard = dialect.decode_request(decode_members(json.dumps(body).encode()))
        read_chat(heard.members, max_n=8, session=None)


@settings(max_examples=300)
@given(
    st.fixed_dictionaries(
        {"input": LISTS},
        optional={
            "tools": LISTS, "tool_choice": OBJECTS, "text": OBJECTS, "reasoning": OBJECTS,
            "metadata": OBJECTS, "service_tier": ODD, "instructions": ODD, "truncation": ODD,
        },
    )
)  # fmt: skip
def test_whatever_responses_are_asked_for(members) -> None:
    read(RESPONSES, {"model": "m", **members})


@settings(max_examples=300)
@given(
    st.fixed_dictionaries(
        {"messages": LISTS},
        optional={
            "tools": LISTS, "tool_choice": OBJECTS, "system": LISTS, "output_config": OBJECTS,
            "context_management": OBJECTS, "metadata": OBJECTS, "thinking": OBJECTS,
        },
    )
)  # fmt: skip
def test_whatever_messages_are_asked_for(members) -> None:
    read(MESSAGES, {"model": "m", "max_tokens": 5, **members})


@pytest.mark.parametrize("kind", [{}, [], 5])
@pytest.mark.parametrize(
    ("dialect", "body", "place"),
    [
        (RESPONSES, {"input": [{"type": ...}]}, "input[0].type"),
        (RESPONSES, {"input": [{"role": "user", "content": [{"type": ...}]}]},
         "input[0].content[0].type"),
        (RESPONSES, {"input": "x", "tools": [{"type": "function", "name": "f"}],
                     "tool_choice": {"type": ...}}, "tool_choice.type"),
        (MESSAGES, {"messages": [{"role": "user", "content": [{"type": ...}]}]},
         "messages[0].content[0].type"),
        (MESSAGES, {"messages": [{"role": "user", "content": "x"}], "tool_choice": {"type": ...}},
         "tool_choice.type"),
    ],
)  # fmt: skip
def test_a_type_that_is_no_name_is_refused_by_its_place(kind, dialect, body, place) -> None:
    text = json.dumps({"model": "m", "max_tokens": 5, **body}, default=lambda _: kind)
    members = decode_members(text.encode())
    if dialect is RESPONSES:
        del members["max_tokens"]
    with pytest.raises(RequestError) as caught:
        dialect.decode_request(members)
    assert caught.value.param == place
