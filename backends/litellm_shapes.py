"""Members of a chat request whose form LiteLLM reads without looking.

At another form it fails before anything is sent, with an error that names no member. Then nobody
could tell a client's mistake from one of the configuration.
"""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Misshapen(NamedTuple):
    """A member whose form cannot be translated; `why` says which form it needs."""

    member: str
    why: str


def find_misshapen(body: Mapping[str, Any]) -> Misshapen | None:
    """Return the first member of a chat request that LiteLLM cannot translate."""
    return next((fault for find in (_format, _tools, _messages) for fault in find(body)), None)


def _format(body: Mapping[str, Any]) -> Iterator[Misshapen]:
    shape = body.get("response_format")
    if shape is None:
        return
    if not isinstance(shape, dict):
        yield Misshapen("response_format", "must be an object with a `type`.")
    elif shape.get("type") == "json_schema":
        inner = shape.get("json_schema")
        if not isinstance(inner, dict):
            yield Misshapen("response_format.json_schema", "must be an object with a `schema`.")
        elif not isinstance(inner.get("schema"), dict):
            yield Misshapen("response_format.json_schema.schema", "must be a JSON schema.")


def _tools(body: Mapping[str, Any]) -> Iterator[Misshapen]:
    tools = body.get("tools")
    for place, tool in enumerate(tools if isinstance(tools, list) else ()):
        if not isinstance(tool, dict):
            yield Misshapen(f"tools[{place}]", "must be an object.")
        elif tool.get("type") == "function":
            function = tool.get("function")
            if not isinstance(function, dict):
                yield Misshapen(f"tools[{place}].function", "must be an object with a `name`.")
            elif not isinstance(function.get("name"), str):
                yield Misshapen(f"tools[{place}].function.name", "must be a string.")


def _messages(body: Mapping[str, Any]) -> Iterator[Misshapen]:
    messages = body.get("messages")
    for number, message in enumerate(messages if isinstance(messages, list) else ()):
        place = f"messages[{number}]"
        if not isinstance(message, dict):
            yield Misshapen(place, "must be an object.")
            continue
        content = message.get("content")
        if isinstance(content, list):
            for part_number, part in enumerate(content):
                yield from _part(part, f"{place}.content[{part_number}]")
        elif content is not None and not isinstance(content, str):
            yield Misshapen(f"{place}.content", "must be a text or a list of parts.")


def _part(part: Any, place: str) -> Iterator[Misshapen]:
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        yield Misshapen(place, "must be an object with a `type`.")
    elif part["type"] == "text" and not isinstance(part.get("text"), str):
        yield Misshapen(f"{place}.text", "must be a string.")
    elif part["type"] == "image_url":
        shown = part.get("image_url")
        if not isinstance(shown.get("url") if isinstance(shown, dict) else shown, str):
            yield Misshapen(f"{place}.image_url", "must be an object with a `url`.")
