"""What a request asks of an API beside an answer: searches and tools that run there, for a fee.

Such fees are in no price per token, so no hold counts them and no usage tells them: a target must
declare `hosted_tools` before one is asked for.
"""

from contextlib import suppress
from typing import Any

import msgspec

from gateway.http.body import Members

_TOOLS = "tools"
# OpenAI's, xAI's, OpenRouter's, Groq's, DashScope's, Qianfan's, Cohere's and Azure's. An empty
# object is a search with its defaults.
SEARCHES = (
    "web_search_options", "search_parameters", "plugins", "compound_custom", "enable_search",
    "web_search", "connectors", "data_sources",
)  # fmt: skip
_NOTHING = (b"null", b"false", b"[]")
_LOOKED_AT = frozenset((_TOOLS, *SEARCHES))
_ON_THE_CLIENT = frozenset({"function", "custom"})  # what runs where the answer is read


class _Tool(msgspec.Struct):
    type: str


_decode = msgspec.json.Decoder(list[_Tool]).decode


def requesting_member(members: Members) -> str | None:
    """The member that asks for it, or None."""
    if _LOOKED_AT.isdisjoint(members):
        return None
    for name in SEARCHES:
        if name in members and bytes(members[name]) not in _NOTHING:
            return name
    if _TOOLS in members and not _kinds(members[_TOOLS]) <= _ON_THE_CLIENT:
        return _TOOLS
    return None


def _kinds(tools: msgspec.Raw) -> set[str]:
    """Of what is no list of tools, what is one in it: how strict a target is nobody knows."""
    with suppress(msgspec.MsgspecError, UnicodeDecodeError):
        return {tool.type for tool in _decode(tools)}
    given: Any = None
    with suppress(msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        given = msgspec.json.decode(tools)
    each = given if isinstance(given, list) else [given]
    return {_kind(item) for item in each if isinstance(item, dict)}


def _kind(tool: dict[str, Any]) -> str:
    """Without a type it is a function by its members alone: Gemini's tools are named by theirs."""
    if tool.get("type"):
        return str(tool["type"])
    names = [name for name in tool if name != "type"]
    is_function = "function" in names or "name" in names or not names
    return "function" if is_function else names[0]
