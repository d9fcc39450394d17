"""A conversation that began at other models, as Claude takes it. Pure.

Clients send a conversation again with each turn, so what Claude refuses once would refuse the
session for good. Thoughts that nobody signed and blank texts of the model's are left out (many say
an empty line before a call), and names of calls are written with the letters that it takes.
Thinking by a budget must have begun the turn whose tools have answered: where it did not, the
request goes without. All that is left out but blanks is named.

Other models that are spoken to in Messages read unsigned thoughts and their own names of calls, so
their requests stay as they are, byte for byte, as Claude's do that need no change.
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
# What a body is looked into for: most have none of it, and to find that out must cost little. Each
# begins with letters, which are found ten times as fast as a choice of words.
_SUSPECTS: Final = (
    re.compile(rb'signature"\s*+:\s*+(?:""|null)'),
    re.compile(rb'id"\s*+:\s*+"[A-Za-z0-9_-]*+[^A-Za-z0-9_"-]'),
    re.compile(rb'budget_tokens"'),
    re.compile(rb'text"\s*+:\s*+"(?:\s|\\[nrt])*+"'),
)


class MovedBody(NamedTuple):
    """`ignored`: what the target does not get."""

    body: bytes
    ignored: tuple[str, ...] = ()


def moved_body(body: bytes) -> MovedBody:
    """Return a request of Messages as its model takes it."""
    if not any(suspect.search(body) for suspect in _SUSPECTS):
        return MovedBody(body)
    try:
        members = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        model = msgspec.json.decode(members.get("model", b"null"))
        messages = msgspec.json.decode(members.get("messages", b"null"))
        thinking = msgspec.json.decode(members.get("thinking", b"null"))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return MovedBody(body)  # the target says what is wrong with it
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
    """Take out edits of thoughts, refused where nothing is thought; yield their member."""
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
    """Whether the last turn of the model called tools and did not begin with a thought."""
    for message in reversed(messages):
        if isinstance(message, dict) and message.get("role") == "assistant":
            blocks = [block for block in _blocks(message) if isinstance(block, dict)]
            calls = any(block.get("type") == "tool_use" for block in blocks)
            return calls and blocks[0].get("type") not in _THOUGHTS
    return False


def _kept(messages: Sequence[Any], left: set[str]) -> Iterator[Any]:
    """Yield the messages as Claude takes them; a turn of which nothing is left says nothing."""
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
    """Whether a block is a text of the model's that says nothing."""
    text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
    return message.get("role") == "assistant" and isinstance(text, str) and not text.strip()


def _is_unsigned(block: Any) -> bool:
    return (
        isinstance(block, dict) and block.get("type") == "thinking" and not block.get("signature")
    )


def _named(block: Any) -> Any:
    """Return a call, or what it came to, with a name that Claude takes: the same for both."""
    member = _CALL_IDS.get(str(block.get("type"))) if isinstance(block, Mapping) else None
    if member is None:
        return block
    name = block.get(member)
    if not isinstance(name, str) or not name or not _ODD_LETTERS.search(name):
        return block
    plain = _ODD_LETTERS.sub("_", name)
    return {**block, member: f"{plain}_{crc32(name.encode()):08x}"}
