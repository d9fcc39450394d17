"""Conversation of Anthropic's Messages as chat messages.

An instruction within the conversation goes into a user turn, as many chat templates accept none
there. Thinking of earlier turns is left out: it is signed, and only its service reads it.
`messages_blocks` translates the blocks.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from gateway.errors import invalid_error
from gateway.request.dialects.conversation import (
    MARK,
    ConversationBuilder,
    Message,
    text_part,
    tool_call,
    with_cache_mark,
)
from gateway.request.dialects.fields import (
    iterate_objects,
    mapping,
    optional_text,
    text,
    type_of,
    unsupported,
)
from gateway.request.dialects.messages_blocks import BlockReader, tool_result_parts
from gateway.request.dialects.messages_tools import runs_at_service

# Members that are converted; others are named as left out.
_READ: Final = frozenset(("role", "content", "output_config", "clear_at"))
_READ_OF_RESULTS: Final = frozenset(("tool_use_id", "content", "is_error"))
_READ_OF_CALLS: Final = frozenset(("id", "name", "input", "caller"))
# Claude Code's accounting line for Anthropic's service: it is no instruction, and its hash
# would separate otherwise equal prompts in the prefix cache.
ATTRIBUTION = "x-anthropic-billing-header:"
_INSTRUCTIONS = ("text", "tool_addition", "tool_removal")


@dataclass(slots=True)
class MessagesConversation:
    """A conversation's turns, what is left out of them, and changes of its tools.

    `added` has tool definitions with their places. `needs_file` is where the user just sent a file.
    """

    turns: ConversationBuilder = field(default_factory=ConversationBuilder)
    reader: BlockReader = field(default_factory=BlockReader)
    added: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    removed: set[str] = field(default_factory=set)

    @property
    def needs_file(self) -> str:
        return self.reader.needs_file

    @property
    def left_out(self) -> set[str]:
        return self.reader.left_out


def conversation(system: Any, messages: Any) -> MessagesConversation:
    """Return instructions and turns. Raises `RequestError` for what chat cannot express."""
    found = MessagesConversation()
    if system is not None:
        found.turns.add_instruction(*_texts(found, system, "system"))
    where, role = "messages", ""
    listed = list(iterate_objects(messages, "messages"))
    newest, roles = _newest(listed), [entry.get("role") for _, entry in listed]
    last_user = max((number for number, role in enumerate(roles) if role == "user"), default=0)
    for number, (where, entry) in enumerate(listed):
        found.reader.newest = number >= newest
        role = text(entry.get("role"), f"{where}.role")
        content, place = entry.get("content"), f"{where}.content"
        found.reader.note_unread("messages", entry, _READ)
        if role == "user":
            _user(found, content, place)
        elif role == "assistant":
            _assistant(found, content, place)
        elif role == "system":
            _instruction(found, entry, where, is_last=number >= last_user)
        else:
            raise invalid_error(f"{where}.role", "must be `user`, `assistant` or `system`.")
    if role == "assistant":
        raise unsupported(
            where,
            "the last message must not be the assistant's. End with a message of the user.",
        )
    if not role:
        raise invalid_error("messages", "must be a list with at least one message.")
    return found


def _newest(listed: Sequence[tuple[str, Mapping[str, Any]]]) -> int:
    """Return the index of the user's newest message.

    A message beside a tool's result is not new: an agent sends it, and would repeat it. Nor is one
    before another user message: that was refused, and is in the history now.
    """
    number = len(listed)
    while number and listed[number - 1][1].get("role") != "assistant":
        number -= 1
    said = [entry.get("content") for _, entry in listed[number:]]
    blocks = [block for content in said if isinstance(content, list) for block in content]
    kinds = [block.get("type") for block in blocks if isinstance(block, dict)]
    if "tool_result" in kinds:
        return len(listed)
    return max((i for i in range(number, len(listed)) if _is_users(listed[i][1])), default=number)


def _is_users(entry: Mapping[str, Any]) -> bool:
    return entry.get("role") == "user"


def _user(found: MessagesConversation, content: Any, place: str) -> None:
    if isinstance(content, str):
        found.turns.add_user(text_part(content))
        return
    is_new, blocks = found.reader.newest, list(iterate_objects(content, place))
    texts = sum(block.get("type") == "text" for _, block in blocks)  # texts that follow
    for where, block in blocks:
        kind = type_of(block, where)
        texts -= kind == "text"
        # Clients append the user's next message to a refused turn: two texts are a sign of that.
        found.reader.newest = is_new and texts < 2
        if kind == "tool_result":
            call_id = text(block.get("tool_use_id"), f"{where}.tool_use_id")
            found.reader.note_unread("messages.tool_result", block, _READ_OF_RESULTS)
            told = tool_result_parts(found.reader, block, where)
            found.turns.add_tool_result(call_id, told, block.get(MARK))
        elif kind == "tool_use":
            raise unsupported(
                where, "a block of type `tool_use` is allowed in messages of the assistant only."
            )
        elif not (_compaction(found, block, where) or _tool_change(found, block, where)):
            found.turns.add_user(*found.reader.parts(block, where))


def _assistant(found: MessagesConversation, content: Any, place: str) -> None:
    if isinstance(content, str):
        found.turns.add_assistant([text_part(content)], [])
        return
    told: list[Message] = []
    calls: list[Message] = []
    for where, block in iterate_objects(content, place):
        kind = type_of(block, where)
        if kind == "tool_use":
            found.reader.note_unread("messages.tool_use", block, _READ_OF_CALLS)
            calls.append(with_cache_mark(_call(block, where), block))
        elif kind == "tool_result":
            raise unsupported(
                where, "a block of type `tool_result` is allowed in messages of the user only."
            )
        elif kind == "compaction":
            if _compaction(found, block, where):
                told, calls = [], []
        elif not _tool_change(found, block, where):
            told += [
                part if kind == "text" or part["type"] != "text" else _apart(part)
                for part in found.reader.parts(block, where)
            ]
    found.turns.add_assistant(told, calls)


def _apart(part: Message) -> Message:
    """Return a text on lines of its own: it is no text of the model, whose texts are joined."""
    return {**part, "text": f"\n{part['text']}\n"}


def _instruction(
    found: MessagesConversation, entry: Mapping[str, Any], place: str, *, is_last: bool
) -> None:
    """Add an instruction of the application within the conversation."""
    if entry.get("output_config"):
        found.left_out.add("messages.output_config")
    if entry.get("clear_at") == "next_user_message" and not is_last:
        return
    content, place = entry.get("content"), f"{place}.content"
    others: list[Message] = []
    if isinstance(content, list):
        blocks = list(iterate_objects(content, place))
        told = []
        for where, block in blocks:
            if type_of(block, where) in _INSTRUCTIONS:
                told += _instructed(found, block, where)
            else:
                others += found.reader.parts(block, where)
    else:
        told = _texts(found, content, place)
    words = "\n\n".join(part["text"] for part in told if part["text"])
    if words:
        found.turns.add_user(text_part(f"<system-reminder>\n{words}\n</system-reminder>"))
    found.turns.add_user(*others)


def _compaction(found: MessagesConversation, block: Mapping[str, Any], place: str) -> bool:
    """Replace all earlier turns by a summary; a failed one changes nothing."""
    if type_of(block, place) != "compaction":
        return False
    for where, change in iterate_objects(block.get("tool_changes") or [], f"{place}.tool_changes"):
        _tool_change(found, change, where)
    summary = optional_text(block.get("content"), f"{place}.content")
    if summary:
        found.turns.forget_turns()
        found.turns.add_user(with_cache_mark(text_part(summary), block))
    return True


def _tool_change(found: MessagesConversation, block: Mapping[str, Any], place: str) -> bool:
    """Note an added or removed tool; all tools of a request are offered from its start."""
    kind = type_of(block, place)
    if kind not in ("tool_addition", "tool_removal"):
        return False
    where = f"{place}.tool"
    tool = mapping(block.get("tool"), where)
    form = type_of(tool, where)
    if form == "tool_definition" and kind == "tool_addition":
        where = f"{where}.definition"
        definition = mapping(tool.get("definition"), where)
        if runs_at_service(definition, where):
            found.left_out.add(f"messages.{kind}")
        else:
            found.added.append((where, definition))
            found.removed.discard(str(definition.get("name")))
    elif form == "tool_reference":
        name = text(tool.get("name"), f"{where}.name")
        (found.removed.add if kind == "tool_removal" else found.removed.discard)(name)
    else:  # tools of tool servers, which the gateway does not offer
        found.left_out.add(f"messages.{kind}")
    return True


def _call(block: Mapping[str, Any], place: str) -> Message:
    given = mapping(block.get("input", {}), f"{place}.input")
    return tool_call(
        text(block.get("id"), f"{place}.id"),
        text(block.get("name"), f"{place}.name"),
        msgspec.json.encode(given).decode(),
    )


def _texts(found: MessagesConversation, content: Any, place: str) -> list[Message]:
    """Return the texts of content that may only hold texts and tool changes."""
    if isinstance(content, str):
        told = [text_part(content)]
    else:
        told = []
        for where, block in iterate_objects(content, place):
            if type_of(block, where) not in _INSTRUCTIONS:
                raise unsupported(
                    where,
                    "only blocks of type `text` are allowed in this message. Put it into a "
                    "message of the user.",
                )
            told += _instructed(found, block, where)
    return [part for part in told if part["text"] and not part["text"].startswith(ATTRIBUTION)]


def _instructed(found: MessagesConversation, block: Mapping[str, Any], place: str) -> list[Message]:
    return [] if _tool_change(found, block, place) else found.reader.parts(block, place)
