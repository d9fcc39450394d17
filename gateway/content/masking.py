"""Placeholders in place of what was found: `[card-1]`, the same for the same value in a request."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

import msgspec

from gateway.content.seams import SplitFind
from gateway.content.text_scanner import TextFind
from gateway.content.turn_taker import TurnTaker

_AT_ONCE: Final = 256  # finds that are masked before others have a turn
_NAME: Final = re.compile(rb"\[([a-z][a-z0-9_]*)-([0-9]{1,6})\]")
_CONVERSATIONS: Final = ("messages", "input")
_ANSWERED: Final = ("reasoning", "function_call", "custom_tool_call", "compaction")  # by a model


class Placeholders:
    """Names each value of a request once, in whatever spellings it stands there."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}

    def reserve(self, members: Mapping[str, bytes | msgspec.Raw]) -> None:
        """Leave alone the names that turns before have, which were stored masked.

        Names that a model says are no others': it repeats those of its prompt, which is named anew
        where its client sends the whole conversation.
        """
        for text in _asked_texts(members):
            for kind, number in _NAME.findall(text):
                known = self._counts.get(kind.decode(), 0)
                self._counts[kind.decode()] = max(known, int(number))

    def name(self, kind: str, value: str) -> str:
        known = self._names.get((kind, value))
        if known is None:
            number = self._counts[kind] = self._counts.get(kind, 0) + 1
            known = self._names[kind, value] = f"[{kind}-{number}]"
        return known


def _asked_texts(members: Mapping[str, bytes | msgspec.Raw]) -> Iterator[bytes]:
    """Yield what a conversation has of others than the model, as JSON."""
    for name in _CONVERSATIONS:
        raw = bytes(members.get(name, b""))
        if raw[:1] != b"[" or b"[" not in raw[1:]:
            continue
        for item in msgspec.json.decode(raw, type=list[msgspec.Raw]):
            told: Any = msgspec.json.decode(item) if _NAME.search(item) else None
            if isinstance(told, dict) and not _is_answer(told):
                yield bytes(item)


def _is_answer(item: Mapping[str, Any]) -> bool:
    return item.get("role") == "assistant" or item.get("type") in _ANSWERED


async def mask_texts(
    texts: list[str],
    finds: Iterable[TextFind],
    splits: Iterable[SplitFind],
    kinds: Collection[str],
    names: Placeholders,
) -> dict[int, str]:
    """Return by place the texts in which something of these kinds is masked."""
    marks: dict[int, list[tuple[int, int, str]]] = {}
    turns = TurnTaker()
    for number, find in enumerate(finds):
        if number % _AT_ONCE == 0:
            await turns.rest()
        if find.kind in kinds:
            name = names.name(find.kind, find.value)
            marks.setdefault(find.text, []).append((find.start, find.end, name))
    for split in splits:
        for part in split:  # each is named, for no text may become empty
            if part.kind in kinds:
                name = names.name(part.kind, part.value)
                marks.setdefault(part.text, []).append((part.start, part.end, name))
    return {place: await _mask(texts[place], spans, turns) for place, spans in marks.items()}


async def _mask(text: str, spans: list[tuple[int, int, str]], turns: TurnTaker) -> str:
    """Return a text with names for spans of it."""
    at, parts = 0, list[str]()
    spans.sort()
    for number, (start, end, name) in enumerate(spans):
        if number % _AT_ONCE == 0:
            await turns.rest()
        if start >= at:
            parts += (text[at:start], name)
        at = max(at, end)  # what overlaps another is hidden with it
    return "".join((*parts, text[at:]))
