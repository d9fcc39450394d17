"""Calls of a conversation, told in a form that other APIs have, too. Pure.

OpenAI's first form pairs a result with the call before it, the second and other APIs pair them by
ids. Other APIs know functions alone, and their arguments are objects.
"""

from typing import Any

import msgspec


def with_call_ids(messages: Any) -> Any:
    """Return the messages with function calls and their results as tool calls.

    A call without a following result is unchanged, and so is a result without a call.
    """
    if not isinstance(messages, list) or not any(map(_is_result, messages)):
        return messages
    told = list(messages)
    for number in range(1, len(told)):
        call = _call_of(told[number - 1])
        if call is None or not _is_result(told[number]):
            continue
        call_id = f"call_{number}"
        made = {"id": call_id, "type": "function", "function": call}
        asked = {name: value for name, value in told[number - 1].items() if name != "function_call"}
        told[number - 1] = {**asked, "tool_calls": [made]}
        said = {name: value for name, value in told[number].items() if name != "name"}
        told[number] = {**said, "role": "tool", "tool_call_id": call_id}
    return told


def with_object_arguments(messages: Any) -> Any:
    """Return the messages, with every call one of a function whose arguments are an object."""
    if not isinstance(messages, list):
        return messages
    return [_with_readable_calls(entry) for entry in messages]


def read_arguments(text: Any) -> dict[str, Any]:
    """Return a call's arguments; those that are no object (cut off, badly written) as said."""
    if not isinstance(text, str) or not text.strip():
        return {}
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"invalid_arguments": text}


def _with_readable_calls(entry: Any) -> Any:
    calls = entry.get("tool_calls") if isinstance(entry, dict) else None
    if not isinstance(calls, list):
        return entry
    told = [_with_object(call) if isinstance(call, dict) else call for call in calls]
    return entry if told == calls else {**entry, "tool_calls": told}


def _with_object(call: dict[str, Any]) -> dict[str, Any]:
    function, custom = call.get("function"), call.get("custom")
    if isinstance(custom, dict):  # of a tool whose input is a text
        name, given = custom.get("name"), {"input": custom.get("input")}
        left = {key: value for key, value in call.items() if key != "custom"}
    elif isinstance(function, dict) and isinstance(function.get("arguments"), str):
        name, given, left = function.get("name"), read_arguments(function["arguments"]), call
        if "invalid_arguments" not in given:
            return call
    else:
        return call
    arguments = msgspec.json.encode(given).decode()
    return {**left, "type": "function", "function": {"name": name, "arguments": arguments}}


def _is_result(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("role") == "function"


def _call_of(entry: Any) -> dict[str, Any] | None:
    """Return the function call of a message that has one, and no tool calls."""
    if not isinstance(entry, dict) or entry.get("role") != "assistant" or entry.get("tool_calls"):
        return None
    call = entry.get("function_call")
    return call if isinstance(call, dict) else None
