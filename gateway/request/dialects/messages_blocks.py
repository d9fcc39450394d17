"""Content blocks of Anthropic's Messages as parts of chat.

It is a registry: one entry per block type has its translation and the members that are read. Calls
of Anthropic's own tools become text, so that a session may move to any model. A block that no
target can read (a stored file, an unknown type) is refused in the user's newest message. In earlier
turns, which clients send again and again, it becomes a line of text. `left_out` names what is left
out.
"""

import binascii
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from gateway.errors import invalid_error
from gateway.request.dialects.conversation import (
    Message,
    image_part,
    is_note,
    text_part,
    with_cache_mark,
    with_note,
)
from gateway.request.dialects.fields import (
    iterate_objects,
    mapping,
    missing_error,
    optional_text,
    text,
    type_of,
    unsupported,
)

Block = Mapping[str, Any]
DEEPEST: Final = 8  # nested blocks; the API has three levels
_PDF: Final = "application/pdf"
_EVERYWHERE: Final = frozenset(("type", "cache_control"))


class BlockReader:
    """A reader of the blocks of one conversation.

    `newest`: the blocks are of the user's newest message, which can still be changed. `needs_file`
    is the place of a new file. `left_out` has names for `x-breakeven-ignored`.
    """

    def __init__(self) -> None:
        self.newest = False
        self.needs_file = ""
        self.left_out: set[str] = set()
        self._depth = 0

    def parts(self, block: Block, place: str) -> list[Message]:
        """Return a block as parts of chat, possibly none."""
        kind = type_of(block, place)
        if kind is None:
            raise missing_error(f"{place}.type")
        form = _FORMS.get(kind)
        if form is None:
            return self.leave_out(
                kind, place, f"a block of type `{kind}`: chat completions have no form for it."
            )
        if self._depth == DEEPEST:
            raise invalid_error(place, "is nested too deeply.")
        self._depth += 1
        told = form.tell(self, block, place)
        self._depth -= 1
        self.note_unread(f"messages.{kind}", block, form.members)
        last = len(told) - (2 if told and is_note(told[-1]) else 1)  # a medium with its note is one
        return [*told[:last], *(with_cache_mark(part, block) for part in told[last:])]

    def note_unread(self, where: str, members: Block, read: Collection[str]) -> None:
        """Note the members that are not among those read."""
        self.left_out |= {
            f"{where}.{name}"
            for name, value in members.items()
            if name not in _EVERYWHERE and name not in read and _says_something(value)
        }

    def leave_out(
        self, kind: str, place: str, why: str, fix: str = "Leave it out.", also: str = ""
    ) -> list[Message]:
        """Return a line for an unreadable block. Raises `RequestError` in the newest message."""
        if self.newest:
            raise unsupported(place, f"{why} {fix}")
        self.left_out.add(f"messages.{kind}")
        return [note_of(kind, also)]


def note_of(kind: str, also: str = "") -> Message:
    """Return the line that tells the model which block was left out."""
    words = kind.replace("_", " ")[:64]
    return text_part(f"[A block ({words}) was left out here{also}: it cannot be read.]")


def _says_something(value: Any) -> bool:
    return any(value.values()) if isinstance(value, dict) else bool(value)


def _text(_: BlockReader, block: Block, place: str) -> list[Message]:
    return [text_part(text(block.get("text"), f"{place}.text"))]


def _image(reader: BlockReader, block: Block, place: str) -> list[Message]:
    source, place = mapping(block.get("source"), f"{place}.source"), f"{place}.source"
    kind = type_of(source, place)
    if kind == "url":
        url = text(source.get("url"), f"{place}.url")
    elif kind == "base64":
        media = text(source.get("media_type"), f"{place}.media_type")
        if not media.startswith("image/"):
            raise invalid_error(
                f"{place}.media_type",
                "must be the media type of an image, for example `image/png`.",
            )
        url = f"data:{media};base64,{text(source.get('data'), f'{place}.data')}"
    elif kind == "file":
        return reader.leave_out("image", place, "no file is kept here.", "Send its data.")
    else:
        raise unsupported(place, "an image must be of type `base64` or `url`.")
    part = image_part(url)
    return [part] if reader.newest else with_note(part, "image", note_of("image"))


def _document(reader: BlockReader, block: Block, place: str) -> list[Message]:
    """Return a text document as text, and a PDF as a file for targets that read files."""
    source, where = mapping(block.get("source"), f"{place}.source"), f"{place}.source"
    title = optional_text(block.get("title"), f"{place}.title")
    context = optional_text(block.get("context"), f"{place}.context")
    lead = "\n\n".join(line for line in (title, context) if line)
    kind = type_of(source, where)
    if kind == "text":
        return [_joined(lead, text(source.get("data"), f"{where}.data"))]
    if kind == "content":
        inner = _listed(reader, source.get("content"), f"{where}.content")
        if all(part["type"] == "text" and not is_note(part) for part in inner):
            return [_joined(lead, *(part["text"] for part in inner))]
        return [*([text_part(lead)] if lead else []), *inner]
    led = [text_part(lead)] if lead else []
    if kind == "base64":
        return [*led, *_data(reader, source, where, title)]
    if kind == "url":
        address = text(source.get("url"), f"{where}.url")
        return led + reader.leave_out(
            "document", where, "a PDF is not fetched here.", "Send its data.", f" ({address})"
        )
    if kind == "file":
        return led + reader.leave_out("document", where, "no file is kept here.", "Send its data.")
    raise unsupported(where, "a document must be of type `base64`, `text`, `content` or `url`.")


def _joined(*lines: str) -> Message:
    return text_part("\n\n".join(line for line in lines if line))


def _data(reader: BlockReader, source: Block, place: str, title: str | None) -> list[Message]:
    media = text(source.get("media_type"), f"{place}.media_type")
    data = text(source.get("data"), f"{place}.data")
    if media.startswith("text/"):
        try:
            return [text_part(binascii.a2b_base64(data).decode())]
        except ValueError as error:
            raise invalid_error(f"{place}.data", "must be UTF-8 in Base64.") from error
    if media != _PDF:
        return reader.leave_out("document", place, f"a document of `{media}`.", "Send its text.")
    name = title or "document.pdf"
    file = {"filename": name, "file_data": f"data:{_PDF};base64,{data}"}
    part: Message = {"type": "file", "file": file}
    if not reader.newest:
        return with_note(part, "file", note_of("PDF document", f" ({name})"))
    reader.needs_file = reader.needs_file or place.removesuffix(".source")
    return [part]


def _search_result(reader: BlockReader, block: Block, place: str) -> list[Message]:
    heads = [text(block.get(name), f"{place}.{name}") for name in ("title", "source")]
    inner = _listed(reader, block.get("content"), f"{place}.content")
    return [text_part("\n".join(heads)), *inner]


def _tool_reference(_: BlockReader, block: Block, place: str) -> list[Message]:
    return [text_part(text(block.get("tool_name"), f"{place}.tool_name"))]


def _browser_state(_: BlockReader, block: Block, place: str) -> list[Message]:
    tabs = [
        f"{'* ' if tab.get('active') is True else '  '}"
        f"{tab.get('tab_id')}: {tab.get('title')} {tab.get('url')}"
        for _, tab in iterate_objects(block.get("tabs") or [], f"{place}.tabs")
    ]
    changes = block.get("state_changes")
    return [text_part("\n".join(("Tabs:", *tabs, *([_encode(changes)] if changes else []))))]


def _unsaid(reader: BlockReader, block: Block, _: str) -> list[Message]:
    """Leave out what only Anthropic's service reads: signed thoughts, and traces of its work."""
    reader.left_out.add(f"messages.{block['type']}")
    return []


def _kept_elsewhere(reader: BlockReader, block: Block, place: str) -> list[Message]:
    file_id = text(block.get("file_id"), f"{place}.file_id")[:64]
    return reader.leave_out(
        str(block["type"]), place, "no container is kept here.", also=f" (file {file_id})"
    )


def _called(_: BlockReader, block: Block, place: str) -> list[Message]:
    name = text(block.get("name"), f"{place}.name")
    given = mapping(block.get("input", {}), f"{place}.input")
    return [text_part(f"[{name} was called with {_encode(given)}]")]


def _outcome(reader: BlockReader, block: Block, place: str) -> list[Message]:
    """Return the result of a service's tool as text, in any of its forms."""
    kind = str(block["type"])
    told = _found(reader, block.get("content"), f"{place}.content", kind)
    failed = [text_part("Error:")] if block.get("is_error") is True else []
    return [*failed, *told] or [text_part(f"[{kind.replace('_', ' ')}: nothing]")]


def _found(
    reader: BlockReader, content: Any, place: str, kind: str, depth: int = 0
) -> list[Message]:
    if depth > DEEPEST:
        raise invalid_error(place, "is nested too deeply.")
    if isinstance(content, str):
        return [text_part(content)] if content else []
    if isinstance(content, list):
        return [
            part
            for index, item in enumerate(content)
            for part in _found(reader, item, f"{place}[{index}]", kind, depth + 1)
        ]
    if not isinstance(content, dict):
        return []
    if type_of(content, place) in _INSIDE:
        return reader.parts(content, place)
    lines = [str(content[name]) for name in _LINES if isinstance(content.get(name), str)]
    if isinstance(content.get("lines"), list):
        lines += map(str, content["lines"])
    if isinstance(content.get("error_code"), str):
        lines.insert(0, f"Error: {content['error_code']}")
    if content.get("return_code"):
        lines.append(f"exit status {content['return_code']}")
    reader.left_out |= {f"messages.{kind}.{name}" for name in _SEALED if content.get(name)}
    told = [text_part("\n".join(line for line in lines if line))] if any(lines) else []
    for name in ("content", "tool_references"):
        told += _found(reader, content.get(name), f"{place}.{name}", kind, depth + 1)
    return told


# Text members of a result, and those that only Anthropic's service can read.
_LINES: Final = ("error_message", "title", "url", "text", "stdout", "stderr")
_SEALED: Final = ("encrypted_content", "encrypted_stdout", "file_id")
_INSIDE: Final = frozenset(("text", "image", "document", "search_result", "tool_reference"))


def _nested_result(reader: BlockReader, block: Block, place: str) -> list[Message]:
    return tool_result_parts(reader, block, place)


def _listed(reader: BlockReader, content: Any, place: str) -> list[Message]:
    """Return the parts of a text or of a list of blocks."""
    if isinstance(content, str):
        return [text_part(content)]
    return [
        part
        for where, block in iterate_objects(content, place)
        for part in reader.parts(block, where)
    ]


def tool_result_parts(reader: BlockReader, block: Block, place: str) -> list[Message]:
    """Return a tool's result; an error is marked in its text, since chat has no flag for it."""
    content = block.get("content")
    parts = [] if content is None else _listed(reader, content, f"{place}.content")
    return [text_part("Error:"), *parts] if block.get("is_error") is True else parts


def _encode(value: Any) -> str:
    return msgspec.json.encode(value).decode()


class _BlockForm(NamedTuple):
    """The form of a block: its translation, and its members; others are listed as left out."""

    tell: Callable[[BlockReader, Block, str], list[Message]]
    members: frozenset[str]


def _form(tell: Callable[[BlockReader, Block, str], list[Message]], *members: str) -> _BlockForm:
    return _BlockForm(tell, frozenset(members))


_OUTCOME: Final = _form(_outcome, "content", "is_error", "tool_use_id", "caller")
_CALLED: Final = _form(_called, "id", "name", "input", "server_name", "caller")
_FORMS: Final[Mapping[str, _BlockForm]] = {
    "text": _form(_text, "text"),
    "image": _form(_image, "source"),
    "document": _form(_document, "source", "title", "context"),
    "search_result": _form(_search_result, "source", "title", "content"),
    "tool_reference": _form(_tool_reference, "tool_name"),
    "browser_state": _form(_browser_state, "tabs", "state_changes"),
    "tool_result": _form(_nested_result, "content", "is_error", "tool_use_id", "toolset_name"),
    "server_tool_use": _CALLED,
    "mcp_tool_use": _CALLED,
    **dict.fromkeys(
        (
            "advisor_tool_result", "bash_code_execution_tool_result", "code_execution_tool_result",
            "mcp_tool_result", "text_editor_code_execution_tool_result", "tool_search_tool_result",
            "web_fetch_tool_result", "web_search_tool_result",
        ),
        _OUTCOME,
    ),
    # A compaction that does not replace all earlier turns (`messages_input`) becomes a text.
    "compaction": _form(_outcome, "content", "encrypted_content", "signature", "tool_changes"),
    "container_upload": _form(_kept_elsewhere, "file_id"),
    # Their members are only for Anthropic's service.
    "thinking": _form(_unsaid, "thinking", "signature"),
    "redacted_thinking": _form(_unsaid, "data"),
    "fallback": _form(_unsaid, "from", "to", "trigger"),
    "mcp_tool_listing": _form(_unsaid, "mcp_server_name", "tools"),
}  # fmt: skip
