"""The conversation of Anthropic's Messages as chat's messages.

An instruction inside the conversation goes into the user's turn: many chat templates take none
there. Thinking of earlier turns is left out: whoever thought it signed it, nobody else reads it.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from gateway.request.dialects.conversation import (
    MARK,
    ConversationBuilder,
    Message,
    image_part,
    text_part,
    tool_call,
    with_cache_mark,
)
from gateway.request.dialects.fields import (
    invalid_error,
    iterate_objects,
    mapping,
    missing_error,
    optional_text,
    text,
    type_of,
    unsupported,
)

# Claude Code's accounting line for Anthropic's service: no instruction for a model, and its hash
# would part prompts in the prefix cache that are alike else.
ATTRIBUTION = "x-anthropic-billing-header:"
_THOUGHT = ("thinking", "redacted_thinking")
_NO_FORM = "chat completions have no form for it. Leave it out."


def conversation(system: Any, messages: Any) -> ConversationBuilder:
    """Instructions and turns; raises `RequestError` with the place that chat cannot say."""
    found = ConversationBuilder()
    if system is not None:
        found.add_instruction(*_texts(system, "system"))
    where, role = "messages", ""
    for where, entry in iterate_objects(messages, "messages"):
        role = text(entry.get("role"), f"{where}.role")
        content, place = entry.get("content"), f"{where}.content"
        if role == "user":
            _user(found, content, place)
        elif role == "assistant":
            _assistant(found, content, place)
        elif role == "system":
            told = "\n\n".join(part["text"] for part in _texts(content, place))
            found.add_user(text_part(f"<system-reminder>\n{told}\n</system-reminder>"))
        else:
            raise invalid_error(f"{where}.role", "must be `user`, `assistant` or `system`.")
    if role == "assistant":
        raise unsupported(
            where,
            "an answer cannot be begun for the model here. End with a message of the user.",
        )
    if not role:
        raise invalid_error("messages", "must be a list with at least one message.")
    return found


def _user(found: ConversationBuilder, content: Any, place: str) -> None:
    if isinstance(content, str):
        found.add_user(text_part(content))
        return
    for where, block in iterate_objects(content, place):
        if block.get("type") == "tool_result":
            call_id = text(block.get("tool_use_id"), f"{where}.tool_use_id")
            found.add_tool_result(call_id, _result(block, f"{where}.content"), block.get(MARK))
        else:
            found.add_user(*_parts(block, where))


def _assistant(found: ConversationBuilder, content: Any, place: str) -> None:
    if isinstance(content, str):
        found.add_assistant([text_part(content)], [])
        return
    told: list[Message] = []
    calls: list[Message] = []
    for where, block in iterate_objects(content, place):
        kind = type_of(block, where)
        if kind == "text":
            told.append(_text(block, where))
        elif kind == "tool_use":
            calls.append(with_cache_mark(_call(block, where), block))
        elif kind not in _THOUGHT:
            raise unsupported(where, f"a block of type `{kind}` in an answer: {_NO_FORM}")
    found.add_assistant(told, calls)


def _call(block: Mapping[str, Any], place: str) -> Message:
    given = mapping(block.get("input", {}), f"{place}.input")
    return tool_call(
        text(block.get("id"), f"{place}.id"),
        text(block.get("name"), f"{place}.name"),
        msgspec.json.encode(given).decode(),
    )


def _result(block: Mapping[str, Any], place: str) -> list[Message]:
    """A tool's result; chat has no mark for one that failed, so its text says so."""
    content = block.get("content")
    if isinstance(content, str):
        parts = [text_part(content)]
    else:
        inner = () if content is None else iterate_objects(content, place)
        parts = [part for where, entry in inner for part in _parts(entry, where)]
    return [text_part("Error:"), *parts] if block.get("is_error") is True else parts


def _parts(block: Mapping[str, Any], place: str) -> list[Message]:
    """A block of the user as parts of chat."""
    kind = type_of(block, place)
    if kind == "text":
        return [_text(block, place)]
    if kind == "image":
        source = mapping(block.get("source"), f"{place}.source")
        return [with_cache_mark(_image(source, f"{place}.source"), block)]
    if kind == "document":
        return _document(block, place)
    if kind is None:
        raise missing_error(f"{place}.type")
    raise unsupported(place, f"a block of type `{kind}`: {_NO_FORM}")


def _image(source: Mapping[str, Any], place: str) -> Message:
    kind = type_of(source, place)
    if kind == "url":
        url = text(source.get("url"), f"{place}.url")
    elif kind == "base64":
        media = text(source.get("media_type"), f"{place}.media_type")
        if not media.startswith("image/"):
            raise invalid_error(f"{place}.media_type", "must be a picture's, such as `image/png`.")
        url = f"data:{media};base64,{text(source.get('data'), f'{place}.data')}"
    else:
        raise unsupported(place, "an image must be of type `base64` or `url`.")
    return image_part(url)


def _document(block: Mapping[str, Any], place: str) -> list[Message]:
    """Texts are text; what would have to be rendered first is refused."""
    source = mapping(block.get("source"), f"{place}.source")
    lead = [optional_text(block.get(name), f"{place}.{name}") for name in ("title", "context")]
    told = [each_name for each_name in lead if each_name]
    if source.get("type") == "text":
        told.append(text(source.get("data"), f"{place}.source.data"))
    elif source.get("type") == "content":
        inner = _texts(source.get("content"), f"{place}.source.content")
        told += [part["text"] for part in inner]
    else:
        raise unsupported(f"{place}.source", "a document must be of type `text` or `content`.")
    return [with_cache_mark(text_part("\n\n".join(told)), block)]


def _texts(content: Any, place: str) -> list[Message]:
    """Texts, where nothing else can stand."""
    if isinstance(content, str):
        found = [text_part(content)]
    else:
        found = []
        for where, block in iterate_objects(content, place):
            if block.get("type") != "text":
                raise unsupported(where, "only blocks of type `text` can stand here.")
            found.append(_text(block, where))
    return [
        finding
        for finding in found
        if finding["text"] and not finding["text"].startswith(ATTRIBUTION)
    ]


def _text(block: Mapping[str, Any], place: str) -> Message:
    return with_cache_mark(text_part(text(block.get("text"), f"{place}.text")), block)
