"""The input of OpenAI's Responses as chat's messages: messages, calls, their outputs.

What a model reasoned before is left out: chat has no place for it. Items that only the service
behind OpenAI's own address can have made, or can read, are refused by their place.
"""

from collections.abc import Mapping
from typing import Any

from gateway.request.dialects.client_tools import call_arguments, output_parts
from gateway.request.dialects.conversation import (
    ConversationBuilder,
    Message,
    image_part,
    text_part,
    tool_call,
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
from gateway.request.dialects.responses_tools import flat_name

_NO_FORM = "chat completions have no form for it. Leave it out."
_TEXTS = ("input_text", "output_text", "text")
# What a model thought, and items that bring tools, say nothing in chat.
_SILENT = frozenset(("reasoning", "additional_tools"))


def chat_messages(instructions: str | None, given: Any) -> list[Message]:
    """Instructions and items; raises `RequestError` with the place that chat cannot say."""
    found = ConversationBuilder()
    if instructions:
        found.add_instruction(text_part(instructions))
    if given is None:
        raise missing_error("input")
    if isinstance(given, str):
        found.add_user(text_part(given))
        return found.messages()
    for where, item in iterate_objects(given, "input"):
        _item(found, item, where)
    told = found.messages()
    if not told:
        raise invalid_error("input", "must be a text or a list with at least one message.")
    return told


def _item(found: ConversationBuilder, item: Mapping[str, Any], place: str) -> None:
    kind = type_of(item, place) if "type" in item else "message"
    if kind == "message":
        _message(found, item, place)
    elif kind == "function_call":
        space = optional_text(item.get("namespace"), f"{place}.namespace")
        call = tool_call(
            text(item.get("call_id"), f"{place}.call_id"),
            flat_name(space, text(item.get("name"), f"{place}.name")),
            text(item.get("arguments"), f"{place}.arguments"),
        )
        found.add_assistant([], [call])
    elif kind in ("function_call_output", "custom_tool_call_output"):
        call_id = text(item.get("call_id"), f"{place}.call_id")
        found.add_tool_result(call_id, _content(item.get("output"), f"{place}.output"))
    elif kind == "item_reference":
        raise unsupported(place, "no answer is kept here to refer to. Send the item itself.")
    elif not (kind in _SILENT or _client_item(found, item, place)):
        raise unsupported(place, f"an item of type `{kind}`: {_NO_FORM}")


def _client_item(found: ConversationBuilder, item: Mapping[str, Any], place: str) -> bool:
    """Add a call of a tool that the client runs, or what it came to; False for another item."""
    call, output = call_arguments(item, place), output_parts(item, place)
    if call is not None:
        space = optional_text(item.get("namespace"), f"{place}.namespace")
        call_id = text(item.get("call_id") or item.get("id"), f"{place}.call_id")
        found.add_assistant([], [tool_call(call_id, flat_name(space, call[0]), call[1])])
    elif output is not None:
        call_id = text(item.get("call_id") or item.get("id"), f"{place}.call_id")
        found.add_tool_result(call_id, output)
    return call is not None or output is not None


def _message(found: ConversationBuilder, item: Mapping[str, Any], place: str) -> None:
    role = text(item.get("role"), f"{place}.role")
    if role == "user":
        found.add_user(*_content(item.get("content"), f"{place}.content"))
        return
    told = _plain(item.get("content"), f"{place}.content")
    if role == "assistant":
        found.add_assistant([text_part(told)], [])
    elif role in ("system", "developer") and not found.has_turns:
        found.add_instruction(text_part(told))
    elif role in ("system", "developer"):  # many chat templates take none in mid-conversation
        found.add_user(text_part(f"<system-reminder>\n{told}\n</system-reminder>"))
    else:
        raise invalid_error(
            f"{place}.role", "must be `user`, `assistant`, `system` or `developer`."
        )


def _content(content: Any, place: str) -> list[Message]:
    if isinstance(content, str):
        return [text_part(content)]
    return [_part(part, where) for where, part in iterate_objects(content, place)]


def _part(part: Mapping[str, Any], place: str) -> Message:
    kind = type_of(part, place)
    if kind in _TEXTS:
        return text_part(text(part.get("text"), f"{place}.text"))
    if kind == "input_image" and part.get("image_url") is not None:
        detail = optional_text(part.get("detail"), f"{place}.detail")
        return image_part(text(part["image_url"], f"{place}.image_url"), detail)
    if kind == "input_file" and part.get("file_data") is not None:
        names = ("file_data", "filename")
        told = {name: optional_text(part.get(name), f"{place}.{name}") for name in names}
        return {"type": "file", "file": {name: line for name, line in told.items() if line}}
    if kind == "input_audio":
        audio = mapping(part.get("input_audio"), f"{place}.input_audio")
        return {"type": "input_audio", "input_audio": audio}
    if kind in ("input_image", "input_file"):
        raise unsupported(place, "no file is kept here. Send its data, or an image's address.")
    raise unsupported(place, f"a part of type `{kind}`: {_NO_FORM}")


def _plain(content: Any, place: str) -> str:
    """Texts, where nothing else can stand."""
    if isinstance(content, str):
        return content
    told = []
    for where, part in iterate_objects(content, place):
        kind = type_of(part, where)
        name = "refusal" if kind == "refusal" else "text"
        if name == "text" and kind not in _TEXTS:
            raise unsupported(where, "only texts can stand here.")
        told.append(text(part.get(name), f"{where}.{name}"))
    return "".join(told)
