"""Conversion of a chat conversation to Anthropic's turns. No I/O.

Messages alternate between two roles: tool results and the user's text next to them are one turn.
Leading instructions become the system prompt, later ones go into the user's turn. Empty and blank
texts, which the API refuses, are left out. A part without a Messages equivalent is refused in the
user's newest message. In earlier turns, which clients resend each time, a text line says that it
was left out.
"""

import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from backends.called_functions import read_arguments, with_call_ids

MARK: Final = "cache_control"
_PDF: Final = "application/pdf"
_TEXT: Final = "text/"
_INSTRUCTIONS: Final = ("system", "developer")
_READ: Final = frozenset(
    ("role", "content", "refusal", "tool_call_id", "tool_calls", "thinking_blocks", MARK)
)
_READ_OF_PARTS: Final = frozenset(("type", "text", "refusal", "image_url", "file", MARK))
_PARTS: Final = _READ_OF_PARTS - {"type", MARK}  # types of parts that Messages have a form for


class NoMessagesForm(Exception):
    """A part of a request that Messages cannot express; `member` is its place in chat."""

    def __init__(self, member: str, why: str) -> None:
        super().__init__(f"`{member}`: {why}")
        self.member = member


def mark_of(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the cache mark of an object, if it has one."""
    return {MARK: value[MARK]} if value.get(MARK) is not None else {}


@dataclass(slots=True)
class MessagesTurns:
    """System blocks, and turns of user and assistant.

    `ignored`: names of members without a Messages equivalent. `newest`: the message being read is
    new.
    """

    system: list[dict[str, Any]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    ignored: set[str] = field(default_factory=set)
    newest: bool = True

    @classmethod
    def read(cls, messages: Any) -> "MessagesTurns":
        """Return the turns of chat messages. Raises `NoMessagesForm` with a part's place."""
        found = cls()
        listed = with_call_ids(messages) if isinstance(messages, list) else []
        newest = _newest(listed)
        for number, entry in enumerate(listed):
            place = f"messages[{number}]"
            found.newest = number >= newest
            if not isinstance(entry, dict):
                raise NoMessagesForm(place, "must be an object.")
            found._add(entry, place)
            found.ignored |= _untold(entry)
        return found

    def with_user_turn(self) -> "MessagesTurns":
        """Return the turns. Instructions alone are the user's turn, as the API wants one.

        Raises `NoMessagesForm` if no message says anything.
        """
        if not self.messages:
            if not self.system:
                raise NoMessagesForm("messages", "at least one message must have text.")
            self.messages, self.system = [{"role": "user", "content": self.system}], []
        return self

    def _add(self, entry: Mapping[str, Any], place: str) -> None:
        role, content, where = entry.get("role"), entry.get("content"), f"{place}.content"
        if role in _INSTRUCTIONS:
            blocks = self._blocks(content, where, entry)
            if not self.messages:
                self.system += blocks
                return
            words = "\n\n".join(block["text"] for block in blocks if block["type"] == "text")
            if any(block["type"] == "image" for block in blocks):
                self.ignored.add("messages.image_url")
            told = f"<system-reminder>\n{words}\n</system-reminder>"
            self._say("user", [{"type": "text", "text": told}] if words else [])
        elif role == "user":
            self._say("user", self._blocks(content, where, entry))
        elif role == "tool":
            result = {"type": "tool_result", "tool_use_id": entry.get("tool_call_id")}
            inner = content if isinstance(content, str) else self._blocks(content, where, {})
            self._say_result({**result, "content": inner, **mark_of(entry)})
        elif role == "assistant":
            thoughts = [block for block in entry.get("thinking_blocks") or () if block]
            calls = [
                _call(call, f"{place}.tool_calls[{number}]")
                for number, call in enumerate(entry.get("tool_calls") or ())
            ]
            content = content or entry.get("refusal")  # an answer has one of them
            said = self._blocks(content, where, {} if calls else entry)
            self._say("assistant", [*thoughts, *said, *calls])
        else:
            raise NoMessagesForm(f"{place}.role", f"the Messages API has no role `{role}`.")

    def _say_result(self, block: dict[str, Any]) -> None:
        """Add a tool result before all else of its turn, as the API requires."""
        if not self.messages or self.messages[-1]["role"] != "user":
            self._say("user", [block])
            return
        said = self.messages[-1]["content"]
        others = (number for number, told in enumerate(said) if told["type"] != "tool_result")
        said.insert(next(others, len(said)), block)

    def _say(self, role: str, blocks: list[dict[str, Any]]) -> None:
        if not blocks:
            return
        if self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"] += blocks
        else:
            self.messages.append({"role": role, "content": blocks})

    def _blocks(self, content: Any, place: str, entry: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return the blocks of a content; the last gets the cache mark of `entry`."""
        if content is None:
            return []
        if isinstance(content, str):
            text = {"type": "text", "text": content, **mark_of(entry)}
            return [text] if content.strip() else []
        if not isinstance(content, list):
            raise NoMessagesForm(place, "must be a text or a list of parts.")
        blocks = []
        for number, part in enumerate(content):
            block = self._block(part, f"{place}[{number}]")
            if block is not None:
                blocks.append({**block, **mark_of(part)})
        if blocks:
            blocks[-1] |= mark_of(entry)
        return blocks

    def _block(self, part: Any, place: str) -> dict[str, Any] | None:
        """Return a part as a block; in earlier turns, a text line for one without equivalent."""
        try:
            return _block(part, place)
        except NoMessagesForm:
            kind = part.get("type") if isinstance(part, dict) else None
            if self.newest or not isinstance(kind, str):
                raise
            self.ignored.add(f"messages.{kind}")
            words = kind.replace("_", " ")[:64]
            return {"type": "text", "text": f"[A part ({words}) was left out: it cannot be read.]"}


def _newest(messages: Sequence[Any]) -> int:
    """Return the index of the first new message of the user.

    A message next to a tool result is not new: an agent resends it. Neither is one before another
    user message: it was refused, and is history now.
    """
    roles = [entry.get("role") if isinstance(entry, dict) else None for entry in messages]
    number = len(roles)
    while number and roles[number - 1] not in ("assistant", "tool"):
        number -= 1
    if number and roles[number - 1] == "tool":
        return len(roles)
    return max((at for at in range(number, len(roles)) if roles[at] == "user"), default=number)


def _untold(entry: Mapping[str, Any]) -> set[str]:
    left = {f"messages.{name}" for name, value in entry.items() if value and name not in _READ}
    content = entry.get("content")
    for part in content if isinstance(content, list) else ():
        if part.get("type") not in _PARTS:  # it is named as a whole
            continue
        left |= {
            f"messages.{part.get('type')}.{name}"
            for name, value in part.items()
            if value and name not in _READ_OF_PARTS
        }
        image = part.get("image_url")
        if isinstance(image, dict) and image.get("detail") not in (None, "auto"):
            left.add("messages.image_url.detail")
    return left


def _block(part: Any, place: str) -> dict[str, Any] | None:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind in ("text", "refusal"):
        words = part.get("text") or part.get("refusal")
        is_blank = not words or (isinstance(words, str) and not words.strip())
        return None if is_blank else {"type": "text", "text": words}
    if kind == "image_url":
        given = part.get("image_url")
        address = given.get("url") if isinstance(given, dict) else given
        return {"type": "image", "source": _source(address, place)}
    if kind == "file" and isinstance(part.get("file"), dict):
        return _document(part["file"], place)
    raise NoMessagesForm(place, f"the Messages API has no part of type `{kind}`.")


def _source(address: Any, place: str) -> dict[str, Any]:
    if not isinstance(address, str) or not address:
        raise NoMessagesForm(place, "must have a URL.")
    if not address.startswith("data:"):
        return {"type": "url", "url": address}
    head, comma, data = address.partition(",")
    media, _, coding = head.removeprefix("data:").partition(";")
    if not comma or coding != "base64":
        raise NoMessagesForm(place, "the data of a picture must be Base64.")
    return {"type": "base64", "media_type": media, "data": data}


def _document(file: Mapping[str, Any], place: str) -> dict[str, Any]:
    data = file.get("file_data")
    head, comma, coded = data.partition(";base64,") if isinstance(data, str) else ("", "", "")
    media = head.removeprefix("data:")
    if comma and media == _PDF:
        source = {"type": "base64", "media_type": media, "data": coded}
    elif comma and media.startswith(_TEXT):
        source = {"type": "text", "media_type": "text/plain", "data": _decoded(coded, place)}
    else:
        raise NoMessagesForm(place, "a file must be a PDF or a text, with its data as Base64.")
    name = file.get("filename")
    return {"type": "document", "source": source, **({"title": name} if name else {})}


def _decoded(coded: str, place: str) -> str:
    try:
        return binascii.a2b_base64(coded).decode()
    except ValueError:
        raise NoMessagesForm(place, "a text file must be UTF-8, as Base64.") from None


def _call(call: Any, place: str) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, dict) else None
    custom = call.get("custom") if isinstance(call, dict) else None
    if isinstance(custom, dict):  # of a tool whose input is a text
        told = {"type": "tool_use", "id": call.get("id"), "name": custom.get("name")}
        return {**told, "input": {"input": custom.get("input")}, **mark_of(call)}
    if not isinstance(function, dict):
        raise NoMessagesForm(place, "the Messages API supports only calls of functions.")
    told = {"type": "tool_use", "id": call.get("id"), "name": function.get("name")}
    return {**told, "input": read_arguments(function.get("arguments")), **mark_of(call)}
