"""The conversation of a chat completion as Anthropic's turns. Pure.

Messages have two roles in turn: results of tools and what the user says beside them are one turn.
Instructions that stand first are the system's; later ones go into the user's turn. Empty texts,
which the API refuses, are left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

MARK: Final = "cache_control"
_PDF: Final = "data:application/pdf;base64,"
_INSTRUCTIONS: Final = ("system", "developer")
_READ: Final = frozenset(("role", "content", "tool_call_id", "tool_calls", "thinking_blocks", MARK))
_READ_OF_PARTS: Final = frozenset(("type", "text", "refusal", "image_url", "file", MARK))


class NoMessagesForm(Exception):
    """Raised for what Messages cannot say; `member` is its place in chat."""

    def __init__(self, member: str, why: str) -> None:
        super().__init__(f"`{member}`: {why}")
        self.member = member


def mark_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the mark of what to cache, where there is one."""
    return {MARK: value[MARK]} if value.get(MARK) is not None else {}


@dataclass(slots=True)
class MessagesTurns:
    """Blocks of the instructions, and turns of user and assistant.

    `ignored`: names of members of messages and parts that Messages have no form for.
    """

    system: list[dict[str, Any]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    ignored: set[str] = field(default_factory=set)

    @classmethod
    def read(cls, messages: Any) -> "MessagesTurns":
        """Raises `NoMessagesForm` with the place of what has none."""
        found = cls()
        for number, entry in enumerate(messages if isinstance(messages, list) else ()):
            place = f"messages[{number}]"
            if not isinstance(entry, dict):
                raise NoMessagesForm(place, "must be an object.")
            found._add(entry, place)
            found.ignored |= _untold(entry)
        return found

    def _add(self, entry: Mapping[str, Any], place: str) -> None:
        role, content, where = entry.get("role"), entry.get("content"), f"{place}.content"
        if role in _INSTRUCTIONS:
            blocks = _blocks(content, where, entry)
            if not self.messages:
                self.system += blocks
                return
            words = "\n\n".join(str(block.get("text")) for block in blocks)
            told = f"<system-reminder>\n{words}\n</system-reminder>"
            self._say("user", [{"type": "text", "text": told}] if words else [])
        elif role == "user":
            self._say("user", _blocks(content, where, entry))
        elif role == "tool":
            result = {"type": "tool_result", "tool_use_id": entry.get("tool_call_id")}
            inner = content if isinstance(content, str) else _blocks(content, where, {})
            self._say("user", [{**result, "content": inner, **mark_of(entry)}])
        elif role == "assistant":
            thoughts = [block for block in entry.get("thinking_blocks") or () if block]
            calls = [
                _call(call, f"{place}.tool_calls[{number}]")
                for number, call in enumerate(entry.get("tool_calls") or ())
            ]
            said = _blocks(content, where, {} if calls else entry)
            self._say("assistant", [*thoughts, *said, *calls])
        else:
            raise NoMessagesForm(f"{place}.role", f"Messages have no role `{role}`.")

    def _say(self, role: str, blocks: list[dict[str, Any]]) -> None:
        if not blocks:
            return
        if self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"] += blocks
        else:
            self.messages.append({"role": role, "content": blocks})


def _untold(entry: Mapping[str, Any]) -> set[str]:
    left = {f"messages.{name}" for name, value in entry.items() if value and name not in _READ}
    content = entry.get("content")
    for part in content if isinstance(content, list) else ():
        left |= {
            f"messages.{part.get('type')}.{name}"
            for name, value in part.items()
            if value and name not in _READ_OF_PARTS
        }
        image = part.get("image_url")
        if isinstance(image, dict) and image.get("detail") not in (None, "auto"):
            left.add("messages.image_url.detail")
    return left


def _blocks(content: Any, place: str, entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return blocks of a content; `entry` may have a mark for the last of them."""
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content, **mark_of(entry)}] if content else []
    if not isinstance(content, list):
        raise NoMessagesForm(place, "must be a text or a list of parts.")
    blocks = []
    for number, part in enumerate(content):
        block = _block(part, f"{place}[{number}]")
        if block is not None:
            blocks.append({**block, **mark_of(part)})
    if blocks:
        blocks[-1] |= mark_of(entry)
    return blocks


def _block(part: Any, place: str) -> dict[str, Any] | None:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in ("text", "refusal"):
        words = part.get("text") or part.get("refusal")
        return {"type": "text", "text": words} if words else None
    if kind == "image_url":
        given = part.get("image_url")
        address = given.get("url") if isinstance(given, dict) else given
        return {"type": "image", "source": _source(address, place)}
    if kind == "file" and isinstance(part.get("file"), dict):
        return _document(part["file"], place)
    raise NoMessagesForm(place, f"Messages have no form for a part of type `{kind}`.")


def _source(address: Any, place: str) -> dict[str, Any]:
    if not isinstance(address, str) or not address:
        raise NoMessagesForm(place, "must have an address.")
    if not address.startswith("data:"):
        return {"type": "url", "url": address}
    head, comma, data = address.partition(",")
    media, _, coding = head.removeprefix("data:").partition(";")
    if not comma or coding != "base64":
        raise NoMessagesForm(place, "data of a picture must be in Base64.")
    return {"type": "base64", "media_type": media, "data": data}


def _document(file: Mapping[str, Any], place: str) -> dict[str, Any]:
    data = file.get("file_data")
    if not isinstance(data, str) or not data.startswith(_PDF):
        raise NoMessagesForm(place, "a file must be a PDF with its data in Base64.")
    source = {"type": "base64", "media_type": "application/pdf", "data": data.removeprefix(_PDF)}
    name = file.get("filename")
    return {"type": "document", "source": source, **({"title": name} if name else {})}


def _call(call: Any, place: str) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        raise NoMessagesForm(place, "only calls of functions have a form in Messages.")
    told = {"type": "tool_use", "id": call.get("id"), "name": function.get("name")}
    return {**told, "input": _input(function.get("arguments")), **mark_of(call)}


def _input(arguments: Any) -> dict[str, Any]:
    """Arguments that are no object (cut off, or badly written) are shown as they were said."""
    if not isinstance(arguments, str) or not arguments.strip():
        return {}
    try:
        found = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        found = None
    return found if isinstance(found, dict) else {"invalid_arguments": arguments}
