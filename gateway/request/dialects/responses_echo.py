"""Members of a request that an answer of Responses repeats."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from gateway.http.body import Members, decode_member
from gateway.request.dialects.fields import decode_whole_member

_ECHOED = (
    "background", "conversation", "frequency_penalty", "instructions", "max_output_tokens",
    "max_tool_calls", "metadata", "parallel_tool_calls", "presence_penalty",
    "previous_response_id", "prompt_cache_key", "prompt_cache_retention", "safety_identifier",
    "store", "temperature", "tool_choice", "top_logprobs", "top_p", "truncation", "user",
)  # fmt: skip
# Members worded by the client; `metadata` goes to no target, and is repeated as it was sent.
WORDED: Final = ("instructions", "prompt_cache_key", "safety_identifier", "text", "tools", "user")
_TOOL_DEFAULTS: Final = {"description": None, "parameters": None, "strict": False}


def echo_of(members: Members) -> dict[str, Any]:
    """Return members that an answer repeats, each with all that its schema requires."""
    echo: dict[str, Any] = {
        name: members[name]
        for name in _ECHOED
        if name in members and bytes(members[name]) != b"null"
    }
    reasoning = decode_whole_member(members, "reasoning")
    if isinstance(reasoning, dict):
        echo["reasoning"] = {"effort": None, "summary": None, **reasoning}
    config = decode_whole_member(members, "text")
    if isinstance(config, dict):
        shape = config.get("format") or {"type": "text"}
        if isinstance(shape, dict) and shape.get("type") == "json_schema":
            shape = {"description": None, "strict": False, **shape}
        echo["text"] = {**config, "format": shape}
    # Not fully decoded: empty lists in a schema take twenty times their bytes in memory.
    tools = decode_member(members, "tools", list[dict[str, msgspec.Raw]])
    if tools is not None:
        echo["tools"] = [
            {**_TOOL_DEFAULTS, **tool} if _is_function(tool) else tool for tool in tools
        ]
    tier = decode_whole_member(members, "service_tier")
    if isinstance(tier, str) and tier != "auto":
        echo["service_tier"] = tier
    return echo


def _is_function(tool: Mapping[str, msgspec.Raw]) -> bool:
    return "type" in tool and msgspec.json.decode(tool["type"]) == "function"
