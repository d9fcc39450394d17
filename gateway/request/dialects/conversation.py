"""A conversation as chat's messages, in a form that chat templates take.

Turns of one role are joined; a tool's images follow its result in a user's turn, because a result
is text; what instructs before anybody spoke is one message. One text is told as text, not as a list
of parts. Marks of what a provider shall cache (`cache_control`) are kept apart: `messages` leaves
them out, for the targets that refuse them, and `messages(marks=True)` has them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Message = dict[str, Any]
MARK = "cache_control"


@dataclass(slots=True)
class _Turn:
    role: str
    parts: list[Message] = field(default_factory=list)
    calls: list[Message] = field(default_factory=list)
    call_id: str = ""
    mark: Any = None


class ConversationBuilder:
    """Grows turn by turn; `messages` is the whole of it."""

    def __init__(self) -> None:
        self._turns: list[_Turn] = []
        self._shown: list[Message] = []  # images of results, which have to stand together

    @property
    def has_turns(self) -> bool:
        """Whether anybody but who runs the application has spoken."""
        return bool(self._shown) or any(turn.role != "system" for turn in self._turns)

    def messages(self, *, marks: bool = False) -> list[Message]:
        self.add_user()
        return [_message(turn, marks=marks) for turn in self._turns]

    def add_instruction(self, *parts: Message) -> None:
        """By whoever runs the application."""
        self.add_user()
        if not parts:
            return
        if not (len(self._turns) == 1 and self._turns[0].role == "system"):
            self._turns.append(_Turn("system"))
        self._turns[-1].parts += parts

    def add_user(self, *parts: Message) -> None:
        """By the user: parts of chat."""
        parts, self._shown = (*self._shown, *parts), []
        if parts:
            self._turn_of("user").parts += parts

    def add_assistant(self, parts: Sequence[Message], calls: Sequence[Message]) -> None:
        """By the model: texts and calls."""
        texts = [part for part in parts if part["text"]]
        if texts or calls:
            self.add_user()
            turn = self._turn_of("assistant")
            turn.parts += texts
            turn.calls += calls

    def add_tool_result(self, call_id: str, parts: Sequence[Message], mark: Any = None) -> None:
        """A tool, for one call."""
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


def tool_call(call_id: str, name: str, arguments: str) -> Message:
    """One call of a function, as the model made it."""
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}


def with_cache_mark(part: Message, block: Mapping[str, Any]) -> Message:
    """The part with its block's mark, where it has one."""
    mark = block.get(MARK)
    return part if mark is None else {**part, MARK: mark}


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
    """A text wherever a text says all of it."""
    parts, joint = turn.parts, {"system": "\n\n", "assistant": "", "tool": "\n"}.get(turn.role)
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
