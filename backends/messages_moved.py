"""Adaptation of conversations that began at other models for Claude. No I/O.

Clients resend a conversation with each turn, so a turn that Claude refuses would block the session.
Unsigned reasoning and blank texts of the model are removed (many models send an empty line before a
call), and tool names are written with allowed letters. Budgeted thinking requires that the turn
with answered tools began with reasoning; otherwise the request omits thinking. All that is removed,
except blanks, is reported. Other models with a Messages API accept these, so their requests are
unchanged byte for byte, as are Claude's that need no change.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec

_CLAUDE: Final = "claude"
_MANAGED: Final = "context_management"
_THOUGHTS: Final = ("thinking", "redacted_thinking")
_ODD_LETTERS: Final = re.compile(r"[^A-Za-z0-9_-]")
_CALL_IDS: Final = {"tool_use": "id", "tool_result": "tool_use_id"}
# Patterns of bodies that may need a change. Most have none, so the test must be cheap. Each
# begins with letters, which are found ten times as fast as alternatives.
_SUSPECTS: Final = (
    re.compile(rb'signature"\s*+:\s*+(?:""|null)'),
    re.compile(rb'id"\s*+:\s*+"[A-Za-z0-9_-]*+[^A-Za-z0-9_"-]'),
    re.compile(rb'budget_tokens"'),
    re.compile(rb'text"\s*+:\s*+"(?:\s|\\[nrt])*+"'),
)


class MovedBody(NamedTuple):
    """An adapted body. `ignored`: members that the target does not receive."""

    body: bytes
    ignored: tuple[str, ...] = ()


def moved_body(body: bytes) -> MovedBody:
    """Return a Messages request in a form that its model accepts."""
    if not any(suspect.search(body) for suspect in _SUSPECTS):
        return MovedBody(body)
    try:
        members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        model = msgspec.json.decode(members.get("model", b"null"))
        messages = msgspec.json.decode(members.get("messages", b"null"))
        thinking = msgspec.json.decode(members.get("thinking", b"null"))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return MovedBody(body)  # the target reports the error
    if not isinstance(model, str) or _CLAUDE not in model.lower():
        return MovedBody(body)
    left = set[str]()
    kept = list(_kept(messages, left)) if isinstance(messages, list) else messages
    if kept != messages:
        members["messages"] = msgspec.Raw(msgspec.json.encode(kept))
    is_budget = isinstance(thinking, dict) and thinking.get("type") == "enabled"
    if is_budget and isinstance(kept, list) and lacks_thought(kept):
        del members["thinking"]
        left.add("thinking")
        left.update(_without_clearing(members))
    if kept == messages and not left:
        return MovedBody(body)
    return MovedBody(msgspec.json.encode(members), tuple(sorted(left)))


def _without_clearing(members: dict[str, msgspec.Raw]) -> Iterator[str]:
    """Remove edits of reasoning, refused without thinking, and yield their member."""
    given = msgspec.json.decode(members.get(_MANAGED, b"null"))
    edits = given.get("edits") if isinstance(given, dict) else None
    if not isinstance(edits, list):
        return
    kept = [edit for edit in edits if not (isinstance(edit, dict) and _clears_thoughts(edit))]
    if len(kept) < len(edits):
        members[_MANAGED] = msgspec.Raw(msgspec.json.encode({**given, "edits": kept}))
        yield _MANAGED


def _clears_thoughts(edit: Mapping[str, Any]) -> bool:
    return str(edit.get("type")).startswith("clear_thinking")


def lacks_thought(messages: Sequence[Any]) -> bool:
    """Return whether the model's last turn called tools without reasoning first."""
    for message in reversed(messages):
        if isinstance(message, dict) and message.get("role") == "assistant":
            blocks = [block for block in _blocks(message) if isinstance(block, dict)]
            calls = any(block.get("type") == "tool_use" for block in blocks)
            return calls and blocks[0].get("type") not in _THOUGHTS
    return False


def _kept(messages: Sequence[Any], left: set[str]) -> Iterator[Any]:
    """Yield the messages that Claude accepts; a turn without any remaining block is left out."""
    for message in messages:
        blocks = _blocks(message)
        said = [block for block in blocks if not _is_blank(message, block)]
        signed = [block for block in said if not _is_unsigned(block)]
        if len(signed) < len(said):
            left.add("messages.thinking")
        if blocks and not signed:
            continue
        told = [_named(block) for block in signed]
        yield message if told == blocks else {**message, "content": told}


def _blocks(message: Any) -> list[Any]:
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, list) else []


def _is_blank(message: Mapping[str, Any], block: Any) -> bool:
    """Return whether a block is a blank text of the model."""
    text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
    return message.get("role") == "assistant" and isinstance(text, str) and not text.strip()


def _is_unsigned(block: Any) -> bool:
    return (
        isinstance(block, dict) and block.get("type") == "thinking" and not block.get("signature")
    )


def _named(block: Any) -> Any:
    """Return a tool call or result with a valid name, equal for both."""
    member = _CALL_IDS.get(str(block.get("type"))) if isinstance(block, Mapping) else None
    if member is None:
        return block
    name = block.get(member)
    if not isinstance(name, str) or not name or not _ODD_LETTERS.search(name):
        return block
    plain = _ODD_LETTERS.sub("_", name)
    return {**block, member: f"{plain}_{crc32(name.encode()):08x}"}
