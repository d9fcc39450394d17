"""A conversation as chat messages, in a form that chat templates accept.

Turns of one role are joined; texts of the model's separate messages by an empty line. Images of a
tool's result follow in a user turn, since a result is text. Instructions before the first turn are
one message. A single text is a string, instead of a list. Cache marks (`cache_control`) are kept
apart: `messages` omits them for targets that refuse them, `messages(marks=True)` has them. A file
or picture may have a note for targets that cannot read it: `messages` has the medium,
`messages(without={...})` the note.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

Message = dict[str, Any]
Medium = Literal["file", "image"]
MARK = "cache_control"
APART: Final = "\n\n"  # between messages of one role that are one text
# Internal member of a part: its medium, and whether it is the medium or its note.
_OF: Final = "_of"


@dataclass(slots=True)
class _Turn:
    role: str
    parts: list[Message] = field(default_factory=list)
    calls: list[Message] = field(default_factory=list)
    call_id: str = ""
    mark: Any = None


class ConversationBuilder:
    """A builder of chat messages, turn by turn; `messages` returns them."""

    def __init__(self) -> None:
        self._turns: list[_Turn] = []
        self._shown: list[Message] = []  # images of results, sent together

    @property
    def has_turns(self) -> bool:
        """Return whether there is a message that is no instruction."""
        return bool(self._shown) or any(turn.role != "system" for turn in self._turns)

    @property
    def media(self) -> frozenset[Medium]:
        """Return the media that have a note."""
        parts = [part for turn in self._turns for part in turn.parts]
        return frozenset(part[_OF][0] for part in (*parts, *self._shown) if _OF in part)

    def messages(self, *, marks: bool = False, without: Collection[Medium] = ()) -> list[Message]:
        """Return chat messages, with notes for the media of `without`."""
        self.add_user()
        turns = [_shown_turn(turn, without) for turn in self._turns]
        return [_message(turn, marks=marks) for turn in turns if turn.parts or turn.role != "user"]

    def forget_turns(self) -> None:
        """Drop the turns so far, which a summary replaces; instructions stay."""
        self._shown = []
        self._turns = [turn for turn in self._turns if turn.role == "system"]

    def add_instruction(self, *parts: Message) -> None:
        """Add an instruction of the application."""
        self.add_user()
        if not parts:
            return
        if not (len(self._turns) == 1 and self._turns[0].role == "system"):
            self._turns.append(_Turn("system"))
        self._turns[-1].parts += parts

    def add_user(self, *parts: Message) -> None:
        """Add parts of a user's message."""
        parts, self._shown = (*self._shown, *parts), []
        if parts:
            self._turn_of("user").parts += parts

    def add_assistant(self, parts: Sequence[Message], calls: Sequence[Message]) -> None:
        """Add texts and calls of the model; its media follow in a user turn, as chat requires."""
        texts = [part for part in parts if part["type"] == "text" and part["text"]]
        if texts or calls:
            self.add_user()
            turn = self._turn_of("assistant")
            turn.parts += _set_apart(turn.parts, texts)
            turn.calls += calls
        self._shown += [part for part in parts if part["type"] != "text"]

    def add_tool_result(self, call_id: str, parts: Sequence[Message], mark: Any = None) -> None:
        """Add a tool's result for one call."""
        texts = [part for part in parts if part["type"] == "text"]
        self._shown += [part for part in parts if part["type"] != "text"]
        mark = mark or next((part[MARK] for part in texts if MARK in part), None)
        self._turns.append(_Turn("tool", texts, call_id=call_id, mark=mark))

    def _turn_of(self, role: str) -> _Turn:
        if not self._turns or self._turns[-1].role != role:
            self._turns.append(_Turn(role))
        return self._turns[-1]


def text_part(told: str) -> Message:
    return {"type": "text", "text": told}


def image_part(url: str, detail: str | None = None) -> Message:
    image = {"url": url} if detail is None else {"url": url, "detail": detail}
    return {"type": "image_url", "image_url": image}


def with_note(part: Message, medium: Medium, note: Message) -> list[Message]:
    """Return a medium and the note that replaces it where it is left out."""
    return [{**part, _OF: (medium, True)}, {**note, _OF: (medium, False)}]


def media_levels(media: frozenset[Medium]) -> list[frozenset[Medium]]:
    """Return the media to leave out of a conversation, from the most to none.

    There may be three levels, as a target may read pictures and no files.
    """
    levels: list[frozenset[Medium]] = [frozenset()]
    if "file" in media:
        levels.insert(0, frozenset(("file",)))
    if "image" in media:
        levels.insert(0, media)
    return levels


def is_note(part: Message) -> bool:
    """Return whether a part is the note of the medium before it."""
    return _OF in part and not part[_OF][1]


def tool_call(call_id: str, name: str, arguments: str) -> Message:
    """Return one call of a function, as the model made it."""
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def with_cache_mark(part: Message, block: Mapping[str, Any]) -> Message:
    """Return the part with its block's cache mark, if there is one."""
    mark = block.get(MARK)
    return part if mark is None else {**part, MARK: mark}


def _set_apart(before: Sequence[Message], texts: list[Message]) -> list[Message]:
    """Return a message's texts, an empty line after those of the message before it."""
    if not (before and texts) or before[-1]["text"].endswith("\n") or texts[0]["text"][0] == "\n":
        return texts
    return [{**texts[0], "text": APART + texts[0]["text"]}, *texts[1:]]


def _shown_turn(turn: _Turn, without: Collection[Medium]) -> _Turn:
    """Return the turn with each medium or its note."""
    if not any(_OF in part for part in turn.parts):
        return turn
    shown = [
        part
        for part in turn.parts
        if _OF not in part or (part[_OF][0] not in without) is part[_OF][1]
    ]
    plain = [{name: value for name, value in part.items() if name != _OF} for part in shown]
    return replace(turn, parts=plain)


def _message(turn: _Turn, *, marks: bool) -> Message:
    message: Message = {"role": turn.role, "content": _content(turn, marks=marks)}
    if turn.role == "tool":
        message["tool_call_id"] = turn.call_id
        if marks and turn.mark is not None:
            message[MARK] = turn.mark
    if turn.calls:
        message["tool_calls"] = turn.calls if marks else [_bare(call) for call in turn.calls]
    return message


def _content(turn: _Turn, *, marks: bool) -> Any:
    """Return the content as one text if it is all text, else as parts."""
    parts, joint = turn.parts, {"system": APART, "assistant": "", "tool": "\n"}.get(turn.role)
    if turn.role != "tool" and marks and any(MARK in part for part in parts):
        return parts
    if joint is None:
        single = len(parts) == 1 and parts[0]["type"] == "text"
        return parts[0]["text"] if single else [_bare(part) for part in parts]
    if turn.role == "assistant" and not parts:
        return None
    return joint.join(part["text"] for part in parts)


def _bare(part: Message) -> Message:
    return {name: value for name, value in part.items() if name != MARK} if MARK in part else part
