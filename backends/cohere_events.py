"""Adaptation of Cohere's streams for LiteLLM, which fails on named events.

LiteLLM also expects tool calls, and the end of a stream with its usage, at other places.
"""

import re
from collections.abc import AsyncIterator
from typing import Final

import msgspec

PREFIXES: Final = frozenset({"cohere", "cohere_chat"})
_DATA: Final = re.compile(rb"^data:\s*(\{.*\})\s*$", re.DOTALL)
_TYPE: Final = re.compile(rb'"type"\s*:\s*"(message-end|tool-call-start|tool-call-delta)"')
_CALLS: Final = frozenset({b"tool-call-start", b"tool-call-delta"})


async def without_names(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield a stream line by line, without event names."""
    rest = b""
    async for part in parts:
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            mended = mend_line(line)
            if mended is not None:
                yield mended + b"\n"
    if rest and (mended := mend_line(rest)) is not None:
        yield mended


def mend_line(line: bytes) -> bytes | None:
    """Return a line as LiteLLM expects it, `None` for a line without data."""
    if not line.strip() or line.startswith(b"event:"):
        return None
    data = _DATA.match(line)
    if data is None:
        return line
    kind = _TYPE.search(data[1])
    word = kind[1] if kind else b""
    if word == b"message-end":
        return b'{"event": "message-end", "data": %b}' % data[1]
    return _call(data[1]) if word in _CALLS else data[1]


def _call(data: bytes) -> bytes:
    """Return a part of a tool call at the place where LiteLLM expects it."""
    try:
        event = msgspec.json.decode(data)
        call = event["delta"]["message"]["tool_calls"]
        function = call.get("function") or {}
    except (msgspec.DecodeError, KeyError, TypeError, AttributeError):
        return data
    part = {
        "id": call.get("id"), "name": function.get("name"),
        "arguments": function.get("arguments") or "",
    }  # fmt: skip
    place = {"type": "tool-call-delta", "index": event.get("index", 0)}
    return msgspec.json.encode({**place, "delta": {"tool_calls": [part]}})
