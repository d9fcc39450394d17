"""Conversion of a stream of chat chunks to its chat completion. Pure."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from backends.sse import EventSplitter, data_spans, join_data
from gateway.request.dialects.chat import joined_name, read_object

# Members of a message whose texts come in pieces, also of its calls and its sound.
_JOINED: Final = frozenset(
    ("content", "refusal", "reasoning_content", "reasoning", "arguments", "input", "data",
     "transcript")
)  # fmt: skip
_PARTED: Final = ("function", "custom", "function_call", "audio")  # objects that come in pieces
_CALLS_LIMIT: Final = 128  # places that one chunk may add
_HEAD: Final = ("id", "created", "model", "service_tier", "system_fingerprint")


def completion_of(stream: bytes) -> dict[str, Any] | None:
    """Return the completion of a whole event stream; None if it has no choice."""
    completion: dict[str, Any] = {"object": "chat.completion", "usage": None}
    choices: dict[int, dict[str, Any]] = {}
    for chunk in _chunks(stream):
        if "error" in chunk:
            return None
        completion |= {name: chunk[name] for name in _HEAD if chunk.get(name) is not None}
        if chunk.get("usage"):
            completion["usage"] = chunk["usage"]
        for choice in _objects(chunk.get("choices")):
            _add_choice(choices, choice)
    if not choices:
        return None
    completion["choices"] = [choices[index] for index in sorted(choices)]
    return completion


def _chunks(stream: bytes) -> Iterator[dict[str, Any]]:
    for told in EventSplitter().feed(stream):
        spans = data_spans(told)
        payload = join_data(told, spans).strip() if spans else b""
        if payload and payload != b"[DONE]":
            chunk = read_object(payload)
            if chunk is not None:
                yield chunk


def _add_choice(choices: dict[int, dict[str, Any]], given: Mapping[str, Any]) -> None:
    index = given.get("index")
    choice = choices.setdefault(
        index if isinstance(index, int) else 0,
        {
            "index": index if isinstance(index, int) else 0,
            "message": {"role": "assistant", "content": None, "refusal": None},
            "logprobs": None,
            "finish_reason": None,
        },
    )
    if given.get("finish_reason") is not None:
        choice["finish_reason"] = given["finish_reason"]
    _add_likely(choice, given.get("logprobs"))
    delta = given.get("delta")
    if isinstance(delta, dict):
        _add_delta(choice["message"], delta)


def _add_delta(message: dict[str, Any], delta: Mapping[str, Any]) -> None:
    """Add the members of a delta: texts grow, lists go on, all else is replaced."""
    for name, value in delta.items():
        known = message.get(name)
        if name == "tool_calls":
            _add_calls(message.setdefault("tool_calls", []), value)
        elif name in _JOINED and isinstance(value, str):
            message[name] = (known if isinstance(known, str) else "") + value
        elif name == "name" and isinstance(value, str) and isinstance(known, str):
            message[name] = joined_name(known, value)
        elif name in _PARTED and isinstance(value, dict) and isinstance(known, dict):
            _add_delta(known, value)
        elif isinstance(value, list) and isinstance(known, list):
            message[name] = [*known, *value]
        elif value is not None:
            message[name] = value


def _add_calls(calls: list[dict[str, Any]], given: Any) -> None:
    for part in _objects(given):
        index = part.get("index")
        place = index if isinstance(index, int) else len(calls)
        while len(calls) <= place < len(calls) + _CALLS_LIMIT:
            calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
        if not 0 <= place < len(calls):
            continue
        if isinstance(part.get("custom"), dict):  # of a tool whose input is a text
            calls[place].pop("function", None)
        told = {name: part[name] for name in ("id", "type") if part.get(name)}
        parts = {name: part[name] for name in _PARTED if isinstance(part.get(name), dict)}
        _add_delta(calls[place], told | parts)


def _add_likely(choice: dict[str, Any], given: Any) -> None:
    if isinstance(given, dict):
        known = choice["logprobs"] or {}
        for name in ("content", "refusal"):
            if isinstance(given.get(name), list):
                known[name] = [*(known.get(name) or ()), *given[name]]
        choice["logprobs"] = known


def _objects(value: Any) -> Iterator[dict[str, Any]]:
    yield from (item for item in value if isinstance(item, dict)) if isinstance(value, list) else ()
