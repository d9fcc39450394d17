"""Text of one member of a JSON object that arrives piece by piece. Pure."""

import json
import re
from typing import Final

_ESCAPES: Final = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "/": "/",
    "\\": "\\",
    '"': '"',
}
_LONG: Final = 12  # characters of the longest escape, a pair of surrogates


class JsonTextReader:
    """A decoder of a growing member; `feed` returns its new text.

    An input that is no object is the text itself. `size` is the number of characters returned.
    """

    def __init__(self, member: str) -> None:
        self._opening = re.compile(rf'\s*\{{\s*"{re.escape(member)}"\s*:\s*"')
        self.size = 0
        self._waiting = ""
        self._state = "before"  # before | inside | behind | plain

    def feed(self, piece: str) -> str:
        """Return the characters of the text that this piece completes."""
        told = self._read(piece)
        self.size += len(told)
        return told

    def _read(self, piece: str) -> str:
        self._waiting += piece
        if self._state == "before":
            self._open()
        if self._state == "inside":
            return self._decode()
        if self._state == "plain":
            told, self._waiting = self._waiting, ""
            return told
        return ""

    def _open(self) -> None:
        match = self._opening.match(self._waiting)
        if match is not None:
            self._waiting, self._state = self._waiting[match.end() :], "inside"
        elif self._waiting.strip() and not self._waiting.lstrip().startswith("{"):
            self._state = "plain"

    def _decode(self) -> str:
        out: list[str] = []
        place, text = 0, self._waiting
        while place < len(text):
            character = text[place]
            if character == '"':
                self._state, self._waiting = "behind", ""
                return "".join(out)
            if character != "\\":
                end = _next_special(text, place)
                out.append(text[place:end])
                place = end
                continue
            size = _escape_size(text, place)
            if size is None:
                break
            out.append(_unescaped(text[place : place + size]))
            place += size
        self._waiting = text[place:]
        return "".join(out)


def _next_special(text: str, place: int) -> int:
    ends = [end for end in (text.find('"', place), text.find("\\", place)) if end >= 0]
    return min(ends, default=len(text))


def _escape_size(text: str, place: int) -> int | None:
    """Return the characters of the escape at this place; None while it is incomplete."""
    if place + 1 >= len(text):
        return None
    if text[place + 1] != "u":
        return 2
    if place + 6 > len(text):
        return None
    if text[place + 2 : place + 4].lower() in ("d8", "d9", "da", "db"):
        rest = text[place + 6 : place + 8]
        if len(rest) < len("\\u") and "\\u".startswith(rest):
            return None
        if rest == "\\u":
            return _LONG if place + _LONG <= len(text) else None
    return 6


def _unescaped(escape: str) -> str:
    if len(escape) == 2:
        return _ESCAPES.get(escape[1], escape[1])
    try:
        told: str = json.loads(f'"{escape}"')
    except ValueError:
        return ""
    return told.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
