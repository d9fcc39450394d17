"""Halves of characters in JSON: escapes of one surrogate, which no decoder takes.

Servers that count a text in UTF-16 cut characters in two, and many clients join them again.
"""

import re

# Escapes: those of backslashes and whole pairs are kept, what is left is half of a character.
_HALVES = re.compile(
    rb"(\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)

# A first half before a text's last quote, and a second one behind its first.
_CUT_OFF = re.compile(rb"(?<!\\)((?:\\\\)*)(\\u[dD][89abAB][0-9a-fA-F]{2})(?=\")")
_GOES_ON = re.compile(rb'(?<!\\)"(?=\\u[dD][c-fC-F][0-9a-fA-F]{2})')


class HalfJoiner:
    """Joins the halves of a character that a stream of JSON documents has in two of them."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = b""  # that a document ended a text with

    def feed(self, document: bytes) -> bytes:
        """Return the document with a half that one before it held back, without one it holds."""
        if rb"\u" not in document:
            return document
        if self._half and _GOES_ON.search(document):
            document = _GOES_ON.sub(lambda quote: quote[0] + self._half, document)
            self._half = b""
        ends = _CUT_OFF.findall(document)
        if ends:
            self._half = ends[-1][1]
            document = _CUT_OFF.sub(lambda cut: cut[1], document)
        return document


def whole_characters(text: bytes) -> bytes | None:
    """JSON with U+FFFD for halves of characters (an escape of `d83d` alone); `None` without any."""
    mended = _HALVES.sub(_whole_or_unknown, text)
    return None if mended == text else mended


def _whole_or_unknown(found: re.Match[bytes]) -> bytes:
    return found[1] or rb"\ufffd"
