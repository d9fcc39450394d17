"""All texts of a decoded JSON value, in their order, and the same value with other texts.

Names of members that APIs give are no text; any other name may hold some. A number is read as its
digits. A string that is JSON itself, as the arguments of calls are, is opened.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from gateway.content.turn_taker import TurnTaker

# Names and values of structure: they are read, but no text is split over them.
_NAMES: Final = frozenset((
    "role", "content", "type", "text", "name", "id", "tool_calls", "function", "arguments",
    "tool_call_id", "call_id", "input", "output", "image_url", "url", "detail", "parameters",
    "properties", "description", "required", "items", "enum", "strict", "tools", "cache_control",
    "ttl", "source", "media_type", "data", "thinking", "signature", "title", "additionalProperties",
    "messages", "model", "user", "system", "metadata", "stream", "index", "status", "summary",
))  # fmt: skip
STRUCTURE: Final = frozenset((
    "role", "type", "id", "name", "tool_call_id", "call_id", "tool_use_id", "media_type", "detail",
    "ttl", "signature", "status", "model", "format", "object",
))  # fmt: skip
LEAST_NUMBER: Final = 10**6  # smaller numbers hold nothing that is found without own patterns
PROMPTS: Final = ("prompt", "input")  # that may be numbers of tokens
_ROW_LEAST, _ROW_MOST = 3, 64  # numbers of a list that may be parts of one: more are a table
_OPENED_BYTES: Final = 1 << 20
_MEDIA: Final = ("data:image/", "data:audio/", "data:video/", "data:application/")
_LONG: Final = 1024
_AT_ONCE: Final = 64  # members of a list that are read before others have a turn


class BodyTexts:
    """Texts of one or more values. `content`: places of those that may be parts of one text.

    `spoken`: of these, what the user says. `media`: how many hold a file and are not read.
    `named`: places of a name that no API gives, and of the one text under it. `least_number`: the
    least number that is a text; smaller ones than usual are a part of no other text.
    """

    __slots__ = ("_least_number", "content", "media", "named", "spoken", "strings", "texts")

    def __init__(self, least_number: int = LEAST_NUMBER) -> None:
        self._least_number = least_number
        self.texts: list[str] = []
        self.content: list[int] = []
        self.spoken: list[int] = []
        self.named: list[tuple[int, int]] = []
        self.media = 0
        self.strings = 0  # that were decoded: names and values

    def add(self, value: Any, name: str = "", *, spoken: bool = False) -> None:
        """Add all texts of a value that is a member of this name."""
        for _ in self.steps(value, name, spoken=spoken):
            pass

    def steps(self, value: Any, name: str = "", *, spoken: bool = False) -> Iterator[None]:
        """Add all texts as `add` does, and stop after each few of a list."""
        if isinstance(value, str):
            self.strings += 1
            self._add_text(value, name, spoken)
        elif isinstance(value, dict):
            yield from self._member_steps(value, spoken)
        elif isinstance(value, list):
            if (digits := digits_in_row(value, name)) is not None:
                self.texts.append(digits)
            for number, inner in enumerate(value, 1):
                yield from self.steps(inner, name, spoken=spoken)
                if number % _AT_ONCE == 0:
                    yield
        elif (digits := digits_of(value, name, self._least_number)) is not None:
            if abs(value) < LEAST_NUMBER:
                self.texts.append(digits)
            else:
                self._append(digits, spoken)

    def _member_steps(self, value: dict[str, Any], spoken: bool) -> Iterator[None]:
        self.strings += len(value)
        if "role" in value:
            spoken = value["role"] == "user"
        for key, inner in value.items():
            if key not in _NAMES:
                self.texts.append(key)
            first = len(self.texts)
            if isinstance(inner, str):
                self.strings += 1
                self._add_text(inner, key, spoken)
            else:
                yield from self.steps(inner, key, spoken=spoken)
            if key not in _NAMES and len(self.texts) == first + 1 and self.texts[-1]:
                self.named.append((first - 1, first))

    def count(self, value: Any) -> None:
        """Count the strings of a value, and read none."""
        if isinstance(value, str):
            self.strings += 1
        elif isinstance(value, dict):
            self.strings += len(value)
            for inner in value.values():
                self.count(inner)
        elif isinstance(value, list):
            for inner in value:
                self.count(inner)

    def _add_text(self, text: str, name: str, spoken: bool) -> None:
        if text[:1] in ("{", "[") and (opened := open_json(text)) is not None:
            before = self.strings
            self.add(opened, name, spoken=spoken)
            self.strings = before
        elif is_media(text):
            self.media += 1
        elif name in STRUCTURE:
            self.texts.append(text)
        elif text:
            self._append(text, spoken)

    def _append(self, text: str, spoken: bool) -> None:
        self.content.append(len(self.texts))
        if spoken:
            self.spoken.append(len(self.texts))
        self.texts.append(text)


class TextRewriter:
    """Puts other texts in their places, in the order in which `BodyTexts` counts them."""

    def __init__(self, texts: Mapping[int, str], least_number: int = LEAST_NUMBER) -> None:
        self._texts = texts
        self._least_number = least_number
        self._next = 0

    def rewrite(self, value: Any, name: str = "") -> Any:
        """Return the value with the texts that are given by their place."""
        if isinstance(value, str):
            return self._rewrite_text(value, name)
        if isinstance(value, dict):
            made = {}
            for key, inner in value.items():
                said = key if key in _NAMES else self._take(key)
                made[said] = self.rewrite(inner, key)
            return made
        if isinstance(value, list):
            row = digits_in_row(value, name)
            said = row if row is None else self._take(row)
            made_list = [self.rewrite(inner, name) for inner in value]
            return made_list if said == row else [said]
        digits = digits_of(value, name, self._least_number)
        if digits is None:
            return value
        said = self._take(digits)
        return value if said == digits else said

    async def rewrite_in_turns(self, value: Any, name: str, turns: TurnTaker) -> Any:
        """Return what `rewrite` does; others have turns in between."""
        if isinstance(value, dict):
            made = {}
            for key, inner in value.items():
                said = key if key in _NAMES else self._take(key)
                made[said] = await self.rewrite_in_turns(inner, key, turns)
            return made
        if isinstance(value, list):
            await turns.rest()
            if digits_in_row(value, name) is not None:
                return self.rewrite(value, name)
            return [await self.rewrite_in_turns(inner, name, turns) for inner in value]
        return self.rewrite(value, name)

    def _rewrite_text(self, text: str, name: str) -> str:
        if text[:1] in ("{", "[") and (opened := open_json(text)) is not None:
            before = self._next
            made = self.rewrite(opened, name)
            changed = any(place in self._texts for place in range(before, self._next))
            return msgspec.json.encode(made).decode() if changed else text
        if is_media(text) or (not text and name not in STRUCTURE):
            return text
        return self._take(text)

    def _take(self, text: str) -> str:
        place, self._next = self._next, self._next + 1
        return self._texts.get(place, text)


def digits_of(value: Any, name: str = "", least: int = LEAST_NUMBER) -> str | None:
    """Return a number's digits where they may be more than an amount, or a token of a prompt."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, float):
        if not value.is_integer():
            return None
        value = int(value)
    return str(value) if abs(value) >= (LEAST_NUMBER if name in PROMPTS else least) else None


def digits_in_row(value: list[Any], name: str = "") -> str | None:
    """Return the small numbers of a list as one text: each may be a part of a number."""
    if name in PROMPTS or not _ROW_LEAST <= len(value) <= _ROW_MOST:
        return None
    if not all(type(each) is int and 0 <= each < LEAST_NUMBER for each in value):
        return None
    return str(value)


def is_media(text: str) -> bool:
    """Return whether a text is a file: an address that holds one, or one long run."""
    if text[:5].lower() == "data:":
        return text[:17].lower().startswith(_MEDIA)
    if len(text) < _LONG or " " in text[:_LONG] or "\n" in text[:76] or not text[:_LONG].isascii():
        return False
    return text[:_LONG].translate(_WORDLESS) == "" and not text[:_LONG].isalpha()


_WORDLESS: Final = dict.fromkeys(
    map(ord, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_=-")
)


def open_json(text: str) -> Any:
    """Return what a text is as JSON, or None."""
    if len(text) > _OPENED_BYTES:
        return None
    try:
        value: Any = msgspec.json.decode(text)
        strings = BodyTexts()
        strings.count(value)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return value if is_all(text.encode(), strings.strings) else None


def is_all(raw: bytes, strings: int) -> bool:
    """Return whether encoded JSON holds so many strings: a decoder keeps the last of a name's.

    What stands under a name that stands there again would leave unread.
    """
    if b"\\" in raw:
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    return raw.count(b'"') == 2 * strings
