"""Searches and tools that a request has an API run for a fee, besides the answer.

Such fees are in no token price, so no hold covers them and no usage reports them: a target must
declare `hosted_tools` to get such a request.
"""

import json
from contextlib import suppress
from typing import Any, Literal

import msgspec

from gateway.http.body import Members, decode_member
from gateway.kinds.prompt_parts import once

_TOOLS = ("tools", "functions")
# Of OpenAI, xAI, OpenRouter, Groq, DashScope, Qianfan, Cohere, Anthropic and Azure, and names
# that several vendors use. An empty object is a search with its defaults.
SEARCHES = (
    "web_search_options", "search_parameters", "plugins", "compound_custom", "enable_search",
    "web_search", "connectors", "data_sources", "mcp_servers", "search_options", "container",
    "enable_code_interpreter", "enable_enhancement", "force_search_enhancement",
    "enable_deep_search", "enable_web_search", "enable_browsing", "web_search_config",
    "browser_search", "use_search", "use_web_search", "online", "builtin_tools", "built_in_tools",
    "server_tools", "tool_resources", "agent_options", "code_interpreter", "file_search",
    "vector_store_ids", "vector_stores", "knowledge_base", "knowledge_base_ids", "knowledge_id",
    "library_ids", "collection_ids",
)  # fmt: skip
_NOTHING = (b"null", b"false", b"[]", b"0", b'""')
_ABSENT = msgspec.Raw(b"null")
_LOOKED_AT = frozenset((*_TOOLS, *SEARCHES))
# Members with a switch of their own: Qianfan's and xAI's. Others ignore such values.
_OFF: dict[str, tuple[str, object]] = {
    "web_search": ("enable", False),
    "search_parameters": ("mode", "off"),
}
_ON_THE_CLIENT = frozenset({"function", "custom"})  # tools that the client runs
# Gemini's tools, named by a member, whatever the others are.
_NAMED_BY_MEMBER = frozenset((
    "googleSearch", "google_search", "googleSearchRetrieval", "google_search_retrieval",
    "enterpriseWebSearch", "enterprise_web_search", "googleMaps", "google_maps", "urlContext",
    "url_context", "codeExecution", "code_execution", "computerUse", "computer_use", "fileSearch",
    "file_search", "retrieval", "vertexAiSearch",
))  # fmt: skip


_JUDGED = frozenset(("type", "function", "custom", "name"))


class _Tool(msgspec.Struct, forbid_unknown_fields=True):
    """A tool that the client runs, as nearly all are."""

    type: Literal["function", "custom"]
    function: msgspec.Raw = _ABSENT
    custom: msgspec.Raw = _ABSENT
    name: str = ""
    description: str | None = None
    parameters: msgspec.Raw = _ABSENT
    strict: bool | None = None
    format: msgspec.Raw = _ABSENT
    cache_control: msgspec.Raw = _ABSENT

    def is_described(self) -> bool:
        return bool(self.name) or self.function is not _ABSENT or self.custom is not _ABSENT


_decode = msgspec.json.Decoder(list[_Tool]).decode
_decode_members = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode
_UNREADABLE = "unreadable"


def asked_depth(members: Members) -> object:
    """Return the requested search depth (`search_context_size`), None without one."""
    if "web_search_options" not in members:
        return None
    options = decode_member(members, "web_search_options", Any)
    return options.get("search_context_size") if isinstance(options, dict) else None


def requesting_member(members: Members) -> str | None:
    """Return the member that requests hosted tools, or None."""
    if _LOOKED_AT.isdisjoint(members):
        return None
    for name in SEARCHES:
        if name in members and bytes(members[name]) not in _NOTHING and not _is_off(members, name):
            return name
    for name in _TOOLS:
        if name in members and not _kinds(members[name]) <= _ON_THE_CLIENT:
            return name
    return None


def _is_off(members: Members, name: str) -> bool:
    if name not in _OFF:
        return False
    word, off = _OFF[name]
    value = decode_member(members, name, Any)
    return isinstance(value, dict) and type(value.get(word)) is type(off) and value[word] == off


def _kinds(tools: msgspec.Raw) -> set[str]:
    """Return the types of tools in a member; an object that is no list counts as one tool."""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):
        plain = _decode(tools)
        if all(tool.is_described() for tool in plain) and _stand_once(tools):
            return {tool.type for tool in plain}
    try:
        given = json.loads(bytes(tools), object_pairs_hook=once)
    except (ValueError, RecursionError):  # a member repeats: which one counts is unknown
        return {_UNREADABLE}
    each = given if isinstance(given, list) else [given]
    return {_kind(item) for item in each if isinstance(item, dict)}


def _stand_once(tools: msgspec.Raw) -> bool:
    """Return whether no tool repeats a member; False also for an unusual layout of the JSON.

    It compares lengths: a decoder keeps only one of repeated members, so its result is shorter.
    """
    members = _decode_members(tools)
    names = sum(map(len, members))
    kept = sum(
        len(name) + len(memoryview(value)) for tool in members for name, value in tool.items()
    )
    # Quotes and colon of each name, commas between members and tools, brackets of both.
    compact = kept + 4 * names - len(members) + 2 * len(members) + len(members) - 1 + 2
    spaced = compact + 2 * names - len(members) + len(members) - 1
    return len(memoryview(tools)) in (compact, spaced)


def _kind(tool: dict[str, Any]) -> str:
    """Return the type of a tool, or if its type is missing or vague, a name from its members."""
    named = next((name for name in tool if name in _NAMED_BY_MEMBER), None)
    if named is not None:
        return named
    # Servers in Go accept names in any case.
    if any(name not in _JUDGED and name.casefold() in _JUDGED for name in tool):
        return _UNREADABLE
    kind = str(tool.get("type") or "function")
    names = [name for name in tool if name != "type"]
    is_described = not names or not {"function", "custom", "name"}.isdisjoint(names)
    return kind if is_described or kind not in _ON_THE_CLIENT else names[0]
