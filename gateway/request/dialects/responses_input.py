"""Input of OpenAI's Responses as chat messages: messages, calls and their outputs.

Earlier reasoning is left out, as chat has no form for it. Results of OpenAI's hosted tools become
text, so that a session may move here. Unknown items and stored files are refused in the newest
input, and are a line of text in earlier turns. Pictures and files of earlier turns become such a
line if no target reads them. `left_out` names everything left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from gateway.errors import invalid_error
from gateway.request.dialects.client_tools import call_arguments, output_parts
from gateway.request.dialects.conversation import (
    APART,
    ConversationBuilder,
    Message,
    image_part,
    text_part,
    tool_call,
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
from gateway.request.dialects.hosted_items import HOSTED, hosted_trace
from gateway.request.dialects.messages_blocks import note_of
from gateway.request.dialects.responses_tools import flat_name

_NO_FORM = "chat completions have no form for it. Leave it out."
_TEXTS = ("input_text", "output_text", "text")
# Names in `x-breakeven-ignored` of parts that are left out.
NAMES: Final[Mapping[str, str]] = {"input_image": "input.image", "input_file": "input.file"}
# Earlier reasoning and items with tools have no content in chat.
_SILENT = frozenset(("reasoning", "additional_tools"))
# Items that stand for a conversation before them, as OpenAI and its clients name them.
COMPACTIONS: Final = ("compaction", "compaction_summary")
# Items of a model whose types do not end in `_call`.
_MODELS: Final = frozenset(("reasoning", *COMPACTIONS, "mcp_list_tools", "mcp_approval_request"))
# Members of items and parts that have a form in chat, or no content for a model.
_TOLD: Final = frozenset((
    "type", "id", "status", "role", "content", "call_id", "name", "namespace", "arguments",
    "input", "output", "action", "actions", "operation", "execution", "tools", "text", "refusal",
    "image_url", "detail", "file_data", "filename", "file_id", "file_url", "input_audio",
    "acknowledged_safety_checks", "pending_safety_checks", "created_by", "logprobs",
))  # fmt: skip


@dataclass(slots=True)
class ResponsesConversation:
    """A conversation's turns, and what is left out of them.

    `newest`: the items being read are new. `needs_file` is the place of a new file.
    """

    turns: ConversationBuilder = field(default_factory=ConversationBuilder)
    newest: bool = True
    needs_file: str = ""
    left_out: set[str] = field(default_factory=set)

    def name_untold(self, value: Mapping[str, Any], kind: str) -> None:
        """Record members of an item or part that are set and reach no target."""
        self.left_out |= {
            f"input.{kind}.{name}" for name, given in value.items() if given and name not in _TOLD
        }

    def noted(self, parts: Sequence[Message], place: str) -> list[Message]:
        """Return parts of chat, with a note for each medium of earlier turns."""
        told: list[Message] = []
        for part in parts:
            kind = part["type"]
            if kind == "image_url" and not self.newest:
                told += with_note(part, "image", note_of("image"))
            elif kind == "file" and not self.newest:
                name = part["file"].get("filename")
                told += with_note(part, "file", note_of("file", f" ({name})" if name else ""))
            else:
                told.append(part)
                if kind == "file":
                    self.needs_file = self.needs_file or place
        return told


def read_conversation(
    instructions: str | None, given: Any, where: str = "input", *, refused_before: bool = True
) -> ResponsesConversation:
    """Read instructions and items. Raises `RequestError` for what chat cannot express.

    `where` is the member with the items. `refused_before`: user messages before the last may have
    been refused once, so they count as history.
    """
    found = ResponsesConversation()
    if instructions:
        found.turns.add_instruction(text_part(instructions))
    if given is None:
        raise missing_error(where)
    if isinstance(given, str):
        found.turns.add_user(text_part(given))
        return found
    listed = list(iterate_objects(given, where))
    items = [item for _, item in listed]
    first_new = _first_new(items, refused_before=refused_before)
    for number, (place, item) in enumerate(listed):
        found.newest = number >= first_new
        _item(found, item, place)
    if not found.turns.messages():
        raise invalid_error(where, "must be a text or a list with at least one message.")
    return found


def _first_new(items: Sequence[Mapping[str, Any]], *, refused_before: bool) -> int:
    """Return the index of the first item that the user has just sent.

    A message beside a tool's output is not new: an agent sends it, and would repeat it. Nor is
    anything up to an earlier user message: that was refused, and is in the history now. Items
    without a role between a model's and a user's message are the model's.
    """
    number = len(items)
    while number and not _is_models(items[number - 1]):
        number -= 1
    outputs = (str(item.get("type")).endswith("_output") for item in items[number:])
    if any(outputs):
        return len(items)
    users = [i for i in range(number, len(items)) if items[i].get("role") == "user"]
    if number and users:
        number = next(i for i in range(number, users[0] + 1) if "role" in items[i])
    return users[-2] + 1 if refused_before and len(users) > 1 else number


def _is_models(item: Mapping[str, Any]) -> bool:
    kind = str(item.get("type") or "message")
    if kind == "message":
        return item.get("role") == "assistant"
    return kind.endswith("_call") or kind in _MODELS


def _item(found: ResponsesConversation, item: Mapping[str, Any], place: str) -> None:
    kind = type_of(item, place) if "type" in item else "message"
    if kind == "reasoning":
        found.left_out.add("input.reasoning")
    elif kind not in HOSTED and kind not in ("additional_tools", *COMPACTIONS):
        found.name_untold(item, str(kind))
    if kind == "message":
        _message(found, item, place)
    elif kind == "function_call":
        space = optional_text(item.get("namespace"), f"{place}.namespace")
        call = tool_call(
            text(item.get("call_id"), f"{place}.call_id"),
            flat_name(space, text(item.get("name"), f"{place}.name")),
            text(item.get("arguments"), f"{place}.arguments"),
        )
        found.turns.add_assistant([], [call])
    elif kind in ("function_call_output", "custom_tool_call_output"):
        call_id = text(item.get("call_id"), f"{place}.call_id")
        found.turns.add_tool_result(call_id, _content(found, item.get("output"), f"{place}.output"))
    elif kind == "item_reference":
        raise unsupported(place, "this gateway does not store answers. Send the item itself.")
    elif kind in HOSTED:
        trace = hosted_trace(item)
        found.left_out |= trace.left_out
        found.turns.add_assistant([text_part(trace.text)], [])
    elif not (kind in _SILENT or _client_item(found, item, place)):
        _leave_out(found, str(kind), place)


def _leave_out(found: ResponsesConversation, kind: str, place: str) -> None:
    """Replace an item that no target reads by a line of text; refuse a new one."""
    if found.newest:
        raise unsupported(place, f"an item of type `{kind}`: {_NO_FORM}")
    found.left_out.add(f"input.{kind}")
    if kind in COMPACTIONS:  # it may be the first item, and no answer is the first turn
        found.turns.add_user(note_of(kind))
    else:
        found.turns.add_assistant([note_of(kind), text_part("\n")], [])


def _client_item(found: ResponsesConversation, item: Mapping[str, Any], place: str) -> bool:
    """Add a call of a client's tool, or its output; return False for another item."""
    call, output = call_arguments(item, place), output_parts(item, place)
    if call is not None:
        space = optional_text(item.get("namespace"), f"{place}.namespace")
        call_id = text(item.get("call_id") or item.get("id"), f"{place}.call_id")
        found.turns.add_assistant([], [tool_call(call_id, flat_name(space, call[0]), call[1])])
    elif output is not None:
        call_id = text(item.get("call_id") or item.get("id"), f"{place}.call_id")
        found.turns.add_tool_result(call_id, found.noted(output, f"{place}.output"))
    return call is not None or output is not None


def _message(found: ResponsesConversation, item: Mapping[str, Any], place: str) -> None:
    role = text(item.get("role"), f"{place}.role")
    if role == "user":
        found.turns.add_user(*_content(found, item.get("content"), f"{place}.content"))
        return
    texts = _plain(found, item.get("content"), f"{place}.content", answered=role == "assistant")
    told = ("" if role == "assistant" else APART).join(filter(None, texts))
    if role == "assistant":
        found.turns.add_assistant([text_part(told)], [])
    elif role in ("system", "developer") and not found.turns.has_turns:
        found.turns.add_instruction(text_part(told))
    elif role in ("system", "developer"):  # many chat templates accept none within the conversation
        found.turns.add_user(text_part(f"<system-reminder>\n{told}\n</system-reminder>"))
    else:
        raise invalid_error(
            f"{place}.role", "must be `user`, `assistant`, `system` or `developer`."
        )


def _content(found: ResponsesConversation, content: Any, place: str) -> list[Message]:
    if isinstance(content, str):
        return [text_part(content)]
    told = []
    is_new, parts = found.newest, list(iterate_objects(content, place))
    texts = sum(part.get("type") in _TEXTS for _, part in parts)  # texts that follow
    for where, part in parts:
        texts -= part.get("type") in _TEXTS
        found.newest = is_new and texts < 2  # another text follows: this part was refused before
        told += found.noted([_part(found, part, where)], where)
    return told


def _part(found: ResponsesConversation, part: Mapping[str, Any], place: str) -> Message:
    kind = type_of(part, place)
    found.name_untold(part, str(kind))
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
    if kind in ("input_image", "input_file") and not found.newest:
        found.left_out.add(NAMES[str(kind)])
        return note_of(str(kind).removeprefix("input_"))
    if kind == "input_file":
        why = "a file is not fetched here" if part.get("file_url") else "no file is kept here"
        raise unsupported(place, f"{why}. Send its data in `file_data`.")
    if kind == "input_image":
        raise unsupported(
            place, "this gateway does not store images. Send the image's data or its address."
        )
    raise unsupported(place, f"a part of type `{kind}`: {_NO_FORM}")


def _plain(found: ResponsesConversation, content: Any, place: str, *, answered: bool) -> list[str]:
    """Return texts, where nothing else may stand.

    `answered`: the texts are an answer's, where a line replaces an output of another type, which
    came from elsewhere and cannot be removed by its client.
    """
    if isinstance(content, str):
        return [content]
    told = []
    for where, part in iterate_objects(content, place):
        kind = type_of(part, where)
        if answered and kind and kind not in _TEXTS and not kind.startswith(("input_", "refusal")):
            found.left_out.add(f"input.{kind}")
            told.append(f"\n{note_of(kind)['text']}\n")
            continue
        found.name_untold(part, str(kind))
        name = "refusal" if kind == "refusal" else "text"
        if name == "text" and kind not in _TEXTS:
            raise unsupported(
                where, "only parts of type text are allowed here. Leave other parts out."
            )
        told.append(text(part.get(name), f"{where}.{name}"))
    return told
