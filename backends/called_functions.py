"""Conversion of OpenAI's `function_call` messages to tool calls with ids. No I/O.

The older form pairs a result with the call before it; tool calls and other APIs pair them by id.
"""

from typing import Any


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


def _is_result(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("role") == "function"


def _call_of(entry: Any) -> dict[str, Any] | None:
    """Return the function call of a message that has one, and no tool calls."""
    if not isinstance(entry, dict) or entry.get("role") != "assistant" or entry.get("tool_calls"):
        return None
    call = entry.get("function_call")
    return call if isinstance(call, dict) else None
