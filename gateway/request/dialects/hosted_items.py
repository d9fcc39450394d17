"""Calls of OpenAI's hosted tools in earlier turns, as text for chat. Pure.

A session that moves here from OpenAI sends these items with every request, so none of them may be
refused. A tool's input and results become text; pictures, ids and tool lists of servers are named
in `x-breakeven-ignored`.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

DEEPEST: Final = 4  # levels of nested results; the API has two
_LINES: Final = ("filename", "title", "url", "text", "logs", "message")  # text members of a result


class HostedTool(NamedTuple):
    """A hosted tool; `asked` is the member with its input, `found` those with its results."""

    name: str
    asked: str
    found: tuple[str, ...] = ()


_CALLS: Final[Mapping[str, HostedTool]] = {
    "web_search_call": HostedTool("web_search", "action"),
    "file_search_call": HostedTool("file_search", "queries", ("results",)),
    "code_interpreter_call": HostedTool("code_interpreter", "code", ("outputs",)),
    "image_generation_call": HostedTool("image_generation", "revised_prompt"),
    "mcp_call": HostedTool("", "arguments", ("output", "error")),
    "mcp_approval_request": HostedTool("", "arguments"),
}
# No content for another service: the tool list of a server.
UNSAID: Final = frozenset(("mcp_list_tools",))
HOSTED: Final = _CALLS.keys() | UNSAID
_EVERYWHERE: Final = frozenset(("type", "id", "status", "name"))


class HostedTrace(NamedTuple):
    """The text of an item; `left_out` names the members that are not in the text."""

    text: str
    left_out: frozenset[str]


def hosted_trace(item: Mapping[str, Any]) -> HostedTrace:
    """Return an item of `HOSTED` as text, which is empty if it has no content."""
    kind = str(item["type"])
    if kind in UNSAID:
        return HostedTrace("", frozenset((f"input.{kind}",)))
    tool = _CALLS[kind]
    name, asked = tool.name or str(item.get("name")), item.get(tool.asked)
    given = asked if isinstance(asked, str) else msgspec.json.encode(asked or {}).decode()
    verb = "is to be called" if kind == "mcp_approval_request" else "was called"
    lines = [f"[{name} {verb} with {given}]"]
    for member in tool.found:
        lines += _told(item.get(member))
    read = {*_EVERYWHERE, tool.asked, *tool.found}
    left = {
        f"input.{kind}.{member}" for member, value in item.items() if value and member not in read
    }
    return HostedTrace("\n".join(lines) + "\n", frozenset(left))


def _told(value: Any, depth: int = 0) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list) and depth < DEEPEST:
        for entry in value:
            yield from _told(entry, depth + 1)
    elif isinstance(value, dict):
        yield from (value[name] for name in _LINES if isinstance(value.get(name), str))
        yield from _told(value.get("content") or [], depth + 1)
