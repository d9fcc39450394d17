"""The conversation of Anthropic's Messages as chat's messages.

What chat templates do not take is avoided: turns of one role are joined, an instruction inside the
conversation goes into the user's turn, and images of a tool's result follow it in a user's turn.
Thinking of earlier turns is left out: whoever thought it signed it, and nobody else reads it.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.dialects.fields import each, mapping, missing, optional_text, text, unsupported, wrong

# Claude Code's own accounting line: no instruction, and its changing hash would keep every prompt
# from the prefix cache. Its documentation tells gateways to take it out for other models.
ATTRIBUTION = "x-anthropic-billing-header:"
_THOUGHT = ("thinking", "redacted_thinking")
_NO_FORM = "chat completions have no form for it. Leave it out."

Message = dict[str, Any]


def system_message(system: Any) -> Message | None:
    """The instructions, if any, as chat's first message."""
    if system is None:
        return None
    told = _plain(system, "system")
    return {"role": "system", "content": "\n\n".join(told)} if told else None


def chat_messages(messages: Any) -> list[Message]:
    """Every turn; raises `RequestError` with the place that chat cannot say."""
    turns = _Turns()
    where, role = "messages", ""
    for where, one in each(messages, "messages"):
        role = text(one.get("role"), f"{where}.role")
        content = one.get("content")
        if role == "user":
            _user(turns, content, f"{where}.content")
        elif role == "assistant":
            _assistant(turns, content, f"{where}.content")
        elif role == "system":
            told = "\n\n".join(_plain(content, f"{where}.content"))
            turns.said(_text_part(f"<system-reminder>\n{told}\n</system-reminder>"))
        else:
            raise wrong(f"{where}.role", "must be `user`, `assistant` or `system`.")
    if role == "assistant":
        raise unsupported(
            where,
            "an answer cannot be begun for the model here. End with a message of the user.",
        )
    return turns.messages


class _Turns:
    """Messages so far; parts of one user's turn are gathered."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    def said(self, *parts: Message) -> None:
        if not parts:
            return
        if not self.messages or self.messages[-1]["role"] != "user":
            self.messages.append({"role": "user", "content": []})
        content = self.messages[-1]["content"]
        if isinstance(content, str):
            content = [_text_part(content)]
        content = [*content, *parts]
        # One text is told as text, which every template takes.
        single = content[0]["text"] if len(content) == 1 and content[0]["type"] == "text" else None
        self.messages[-1]["content"] = content if single is None else single


def _user(turns: _Turns, content: Any, place: str) -> None:
    if isinstance(content, str):
        turns.said(_text_part(content))
        return
    shown: list[Message] = []  # images of results: behind all of them, which stand together
    for where, block in each(content, place):
        if block.get("type") == "tool_result":
            turns.messages.append(_result(block, where, shown))
        else:
            turns.said(*shown, *_parts(block, where))
            shown = []
    turns.said(*shown)


def _assistant(turns: _Turns, content: Any, place: str) -> None:
    told: list[str] = []
    calls: list[Message] = []
    if isinstance(content, str):
        told.append(content)
    else:
        for where, block in each(content, place):
            kind = block.get("type")
            if kind == "text":
                told.append(text(block.get("text"), f"{where}.text"))
            elif kind == "tool_use":
                calls.append(_call(block, where))
            elif kind not in _THOUGHT:
                raise unsupported(where, f"a block of type `{kind}` in an answer: {_NO_FORM}")
    message: Message = {"role": "assistant", "content": "".join(told) or None}
    if calls:
        message["tool_calls"] = calls
    elif not told:
        return  # nothing but thoughts
    turns.messages.append(message)


def _call(block: Mapping[str, Any], place: str) -> Message:
    given = mapping(block.get("input", {}), f"{place}.input")
    return {
        "id": text(block.get("id"), f"{place}.id"),
        "type": "function",
        "function": {
            "name": text(block.get("name"), f"{place}.name"),
            "arguments": msgspec.json.encode(given).decode(),
        },
    }


def _result(block: Mapping[str, Any], place: str, shown: list[Message]) -> Message:
    """A tool's result; its images go to `shown`."""
    content, told = block.get("content"), []
    if isinstance(content, str):
        told.append(content)
    elif content is not None:
        for where, inner in each(content, f"{place}.content"):
            for part in _parts(inner, where):
                if part["type"] == "text":
                    told.append(part["text"])
                else:
                    shown.append(part)
    answer = "\n".join(told)
    if block.get("is_error") is True:
        answer = f"Error: {answer}"
    return {
        "role": "tool",
        "tool_call_id": text(block.get("tool_use_id"), f"{place}.tool_use_id"),
        "content": answer,
    }


def _parts(block: Mapping[str, Any], place: str) -> list[Message]:
    """A block of the user as parts of chat."""
    kind = block.get("type")
    if kind == "text":
        return [_text_part(text(block.get("text"), f"{place}.text"))]
    if kind == "image":
        return [_image(mapping(block.get("source"), f"{place}.source"), f"{place}.source")]
    if kind == "document":
        return _document(block, place)
    if kind is None:
        raise missing(f"{place}.type")
    raise unsupported(place, f"a block of type `{kind}`: {_NO_FORM}")


def _image(source: Mapping[str, Any], place: str) -> Message:
    kind = source.get("type")
    if kind == "url":
        url = text(source.get("url"), f"{place}.url")
    elif kind == "base64":
        media = text(source.get("media_type"), f"{place}.media_type")
        url = f"data:{media};base64,{text(source.get('data'), f'{place}.data')}"
    else:
        raise unsupported(place, "an image must be of type `base64` or `url`.")
    return {"type": "image_url", "image_url": {"url": url}}


def _document(block: Mapping[str, Any], place: str) -> list[Message]:
    """Texts are text; what would have to be rendered first is refused."""
    source = mapping(block.get("source"), f"{place}.source")
    lead = [optional_text(block.get(name), f"{place}.{name}") for name in ("title", "context")]
    told = [one for one in lead if one]
    if source.get("type") == "text":
        told.append(text(source.get("data"), f"{place}.source.data"))
    elif source.get("type") == "content":
        told += _plain(source.get("content"), f"{place}.source.content")
    else:
        raise unsupported(f"{place}.source", "a document must be of type `text` or `content`.")
    return [_text_part("\n\n".join(told))]


def _plain(content: Any, place: str) -> list[str]:
    """Texts, where nothing else can stand."""
    if isinstance(content, str):
        found = [content]
    else:
        found = []
        for where, block in each(content, place):
            if block.get("type") != "text":
                raise unsupported(where, "only blocks of type `text` can stand here.")
            found.append(text(block.get("text"), f"{where}.text"))
    return [one for one in found if one and not one.startswith(ATTRIBUTION)]


def _text_part(told: str) -> Message:
    return {"type": "text", "text": told}
