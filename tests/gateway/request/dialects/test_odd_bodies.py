"""Whatever a client nests into its body is understood or refused by its place, never a failure."""

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from gateway.errors import RequestError
from gateway.http.body import decode_members
from gateway.kinds.chat import read_chat
from gateway.request.dialects.client_tools import CLIENT_TOOLS
from gateway.request.dialects.messages import MESSAGES
from gateway.request.dialects.responses import RESPONSES

ODD: Any = (None, True, 0, 1.5, "", "x", [], {}, [[]], [{}], {"x": []}, [None])
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
ROLES = ("user", "assistant", "system", "developer", "tool")
PLAIN = [{"role": "user", "content": "x"}]
DEPTH = 4  # objects within objects
BODIES = 2_000  # of each dialect


class OddBodies:
    """Bodies from a seed: hypothesis draws one in 40 ms, of which the gateway takes one."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def body(self, always: str, plain: Any, shapes: dict[str, Callable[[], Any]]) -> dict[str, Any]:
        """Members of these shapes, beside one that is often plain: what it hides is read then."""
        chosen = [name for name in shapes if self.random.random() < 0.4]
        found = {name: shapes[name]() for name in chosen}
        return {**found, always: plain if self.random.random() < 0.4 else self.list()}

    def odd(self) -> Any:
        return self.random.choice(ODD)

    def object(self) -> Any:
        return self.odd() if self.random.random() < 0.2 else self.typed(DEPTH)

    def list(self) -> Any:
        if self.random.random() < 0.2:
            return self.odd()
        return [self.typed(DEPTH) for _ in range(self.random.randint(0, 3))]

    def typed(self, depth: int) -> dict[str, Any]:
        """An object as both dialects have them: a form, a role, and members of any value."""
        members = self.random.sample(MEMBERS, self.random.choice((0, 1, 1, 2, 3, 5)))
        nests = ["content"] if self.random.random() < 0.5 else []
        found = {name: self.value(depth - 1) for name in (*members, *nests)}
        for name, known in (("type", TYPES), ("role", ROLES)):
            if self.random.random() < 0.7:
                odd = self.random.random() < 0.2
                found[name] = self.odd() if odd else self.random.choice(known)
        return found

    def value(self, depth: int) -> Any:
        if depth <= 0 or self.random.random() < 0.4:
            return self.odd()
        if self.random.random() < 0.5:
            return self.typed(depth)
        return [self.typed(depth) for _ in range(self.random.randint(0, 3))]


def read(dialect: Any, body: dict[str, Any]) -> None:
    """Anything but a refusal is a failure of the gateway."""
    try:
        heard = dialect.decode_request(decode_members(json.dumps(body).encode()))
        read_chat(heard.members, max_n=8, session=None)
    except RequestError:
        pass
    except Exception as fault:
        fault.add_note(json.dumps(body))
        raise


def test_whatever_responses_are_asked_for() -> None:
    for seed in range(BODIES):
        odd = OddBodies(seed)
        shapes = {
            "tools": odd.list, "tool_choice": odd.object, "text": odd.object,
            "reasoning": odd.object, "metadata": odd.object, "service_tier": odd.odd,
            "instructions": odd.odd, "truncation": odd.odd,
        }  # fmt: skip
        read(RESPONSES, {"model": "m", **odd.body("input", "x", shapes)})


def test_whatever_messages_are_asked_for() -> None:
    for seed in range(BODIES):
        odd = OddBodies(seed)
        shapes = {
            "tools": odd.list, "tool_choice": odd.object, "system": odd.list,
            "output_config": odd.object, "context_management": odd.object, "metadata": odd.object,
            "thinking": odd.object,
        }  # fmt: skip
        read(MESSAGES, {"model": "m", "max_tokens": 5, **odd.body("messages", PLAIN, shapes)})


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
