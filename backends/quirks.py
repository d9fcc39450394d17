"""Adaptation of chat requests to providers that differ from OpenAI.

A request is changed only if it has a member that the provider does not support, and only in that
member; all other bytes stay.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

CHAT_PATH: Final = "/chat/completions"
_CAPS: Final = ("max_completion_tokens", "max_tokens")
# Clients do not set these explicitly, so leaving them out is not reported.
_UNASKED: Final = frozenset({"stream_options"})


class Quirks(msgspec.Struct, frozen=True, kw_only=True):
    """One provider's differences.

    `path`: the path between the stated address and chat's path. `renames`: its names of members.
    `leaves_out`: members that it does not support. `temperature_max`: its highest temperature.
    `joins_texts`: it accepts a message's content only as one text. `key_headers`: headers with the
    key besides `authorization`.
    """

    path: str = ""
    renames: Mapping[str, str] = {}
    leaves_out: tuple[str, ...] = ()
    temperature_max: float | None = None
    joins_texts: bool = False
    key_headers: tuple[str, ...] = ()

    def base(self, address: str) -> str:
        """Return the base address for chat's path."""
        address = address.rstrip("/")
        return address if address.endswith(self.path) else address + self.path

    def apply(self, body: bytes) -> tuple[bytes, tuple[str, ...]]:
        """Return the body in the provider's form, and the members left out of it."""
        try:
            members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return body, ()
        before = dict(members)
        out = [name for name in self.leaves_out if members.pop(name, None) not in (None, _NULL)]
        for name, word in self.renames.items():
            value = members.pop(name, None)
            if value is not None:
                members[word] = _least(value, members.get(word)) if name in _CAPS else value
        if self.temperature_max is not None and "temperature" in members:
            told = _decode(members["temperature"])
            if isinstance(told, int | float) and told > self.temperature_max:
                members["temperature"] = _raw(self.temperature_max)
        if self.joins_texts and "messages" in members:
            members["messages"] = _joined(members["messages"])
        if members == before:
            return body, ()
        return msgspec.json.encode(members), tuple(sorted(set(out) - _UNASKED))


NO_QUIRKS: Final = Quirks()
_NULL: Final = msgspec.Raw(b"null")


def _decode(value: msgspec.Raw) -> Any:
    return msgspec.json.decode(value)


def _raw(value: Any) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(value))


def _least(value: msgspec.Raw, other: msgspec.Raw | None) -> msgspec.Raw:
    """Return the lower of two limits; the target judges one that is not a number."""
    caps = [cap for cap in (value, other) if cap is not None]
    numbers = [cap for cap in caps if type(_decode(cap)) is int]
    return min(numbers, key=_decode) if numbers else value


def _joined(messages: msgspec.Raw) -> msgspec.Raw:
    """Return the messages with content of several texts joined to one."""
    told = _decode(messages)
    if not isinstance(told, list):
        return messages
    changed = False
    for message in told:
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list) and content and all(map(_is_text, content)):
            message["content"] = "".join(part["text"] for part in content)
            changed = True
    return _raw(told) if changed else messages


def _is_text(part: Any) -> bool:
    is_text = isinstance(part, dict) and part.get("type") == "text"
    return is_text and isinstance(part.get("text"), str)
