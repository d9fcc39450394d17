"""The whole answer of one choice, known before its first token is due.

A forced tool call or a JSON format gives the smallest document that its schema allows, in ASCII, so
that clients' normal paths can be tested. Every other answer is generated words.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from backends.simulator import words

DEPTH_LIMIT = 16


@dataclass(frozen=True, slots=True)
class Script:
    """The answer of one choice. `tool` names the function whose arguments `text` is."""

    text: str
    tokens: int
    finish_reason: str
    stop_reason: str | None = None
    tool: str | None = None


def make_script(fields: Mapping[str, Any], seed: int, limit: int, *, chat: bool) -> Script:
    """Return the answer for these request fields, with at most `limit` tokens."""
    tool = _forced_tool(fields) if chat else None
    if tool is not None:
        name, schema, reason = tool
        return _document(schema, limit, reason, name)
    schema = _json_schema(fields)
    if schema is not None:
        return _document(schema, limit, "stop", None)
    if fields.get("ignore_eos"):
        length, reason = limit, "length"
    else:
        natural = max(words.natural_length(seed), _number(fields.get("min_tokens")))
        length, reason = (natural, "stop") if natural <= limit else (limit, "length")
    whole = words.text(seed, length)
    stop = fields.get("stop")
    stops = [stop] if isinstance(stop, str) else stop or []
    stopped = words.find_stop(whole, stops)
    if stopped is not None:
        return Script(stopped[0], stopped[1], "stop", stopped[2])
    return Script(whole, length, reason)


def instance(schema: Any, depth: int = 0) -> Any:
    """Return a small value that satisfies the common part of JSON Schema."""
    if not isinstance(schema, Mapping) or depth > DEPTH_LIMIT:
        return None
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return instance(schema[key][0], depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else None)
    return _of_type(kind[0] if isinstance(kind, list) else kind, schema, depth)


def _of_type(kind: Any, schema: Mapping[str, Any], depth: int) -> Any:
    if kind == "object":
        properties = schema.get("properties", {})
        required = schema.get("required", list(properties))
        return {name: instance(properties.get(name, {}), depth + 1) for name in required}
    if kind == "array":
        return [instance(schema.get("items", {}), depth + 1)] * _number(schema.get("minItems"))
    numbers = {"integer": schema.get("minimum", 0), "number": schema.get("minimum", 0)}
    return {"string": "simulated", "boolean": False, **numbers}.get(kind)


def _document(schema: Any, limit: int, reason: str, tool: str | None) -> Script:
    encoded = msgspec.json.encode(instance(schema)).decode()
    whole = encoded.encode("ascii", "backslashreplace").decode()
    tokens = words.count(whole.encode())
    if tokens > limit:
        return Script(words.cut_text(whole, 0, limit), limit, "length", None, tool)
    return Script(whole, tokens, reason, None, tool)


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _json_schema(fields: Mapping[str, Any]) -> Any:
    wanted = fields.get("response_format")
    if not isinstance(wanted, Mapping):
        return None
    if wanted.get("type") == "json_schema":
        return (wanted.get("json_schema") or {}).get("schema") or {"type": "object"}
    return {"type": "object"} if wanted.get("type") == "json_object" else None


def _forced_tool(fields: Mapping[str, Any]) -> tuple[str, Any, str] | None:
    """Return name, parameter schema and finish reason of the call that `tool_choice` forces."""
    choice, tools = fields.get("tool_choice"), fields.get("tools")
    if not isinstance(tools, list) or not tools:
        return None
    functions = {
        tool["function"]["name"]: tool["function"].get("parameters", {})
        for tool in tools
        if isinstance(tool, Mapping) and isinstance(tool.get("function"), Mapping)
    }
    if choice == "required" and functions:
        name = next(iter(functions))
        return name, functions[name], "tool_calls"
    if isinstance(choice, Mapping):
        named = (choice.get("function") or {}).get("name")
        if isinstance(named, str) and named in functions:
            return named, functions[named], "stop"  # vLLM's value for a named function
    return None
