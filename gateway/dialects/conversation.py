"""A conversation as chat's messages, in a form that chat templates take.

Turns of one role are joined; a tool's images follow its result in a user's turn, because a result
is text; what instructs before anybody spoke is one message. One text is told as text, not as a list
of parts.
"""

from typing import Any

Message = dict[str, Any]


class Conversation:
    """Grows turn by turn; `messages` is the whole of it."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._shown: list[Message] = []  # images of results, which have to stand together

    @property
    def messages(self) -> list[Message]:
        self.said()
        return self._messages

    @property
    def last_role(self) -> str:
        return str(self._messages[-1]["role"]) if self._messages else ""

    def instructed(self, told: str) -> None:
        """By whoever runs the application."""
        self.said()
        if len(self._messages) == 1 and self.last_role == "system":
            self._messages[0]["content"] += f"\n\n{told}"
        else:
            self._messages.append({"role": "system", "content": told})

    def said(self, *parts: Message) -> None:
        """By the user: parts of chat."""
        parts, self._shown = (*self._shown, *parts), []
        if not parts:
            return
        if self.last_role != "user":
            self._messages.append({"role": "user", "content": []})
        turn = self._messages[-1]
        before = turn["content"]
        content = [*([text_part(before)] if isinstance(before, str) else before), *parts]
        turn["content"] = content
        if len(content) == 1 and content[0]["type"] == "text":
            turn["content"] = content[0]["text"]

    def answered(self, told: str | None, calls: list[Message]) -> None:
        """By the model."""
        if not told and not calls:
            return
        self.said()
        if self.last_role != "assistant":
            self._messages.append({"role": "assistant", "content": None})
        turn = self._messages[-1]
        if told:
            turn["content"] = (turn["content"] or "") + told
        if calls:
            turn["tool_calls"] = [*turn.get("tool_calls", ()), *calls]

    def resulted(self, call_id: str, parts: list[Message]) -> None:
        """A tool, for one call."""
        told = [part["text"] for part in parts if part["type"] == "text"]
        self._shown += [part for part in parts if part["type"] != "text"]
        content = "\n".join(told)
        self._messages.append({"role": "tool", "tool_call_id": call_id, "content": content})


def text_part(told: str) -> Message:
    return {"type": "text", "text": told}


def image_part(url: str, detail: str | None = None) -> Message:
    image = {"url": url} if detail is None else {"url": url, "detail": detail}
    return {"type": "image_url", "image_url": image}


def called(call_id: str, name: str, arguments: str) -> Message:
    """One call of a function, as the model made it."""
    function = {"name": name, "arguments": arguments}
    return {"id": call_id, "type": "function", "function": function}
