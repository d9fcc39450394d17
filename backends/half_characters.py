"""Repair of JSON with escapes of single surrogates, which decoders refuse.

Servers that count text in UTF-16 split characters, and many clients join the halves again.
"""

import re

# Escapes of backslashes and whole pairs are kept; the remaining ones are single surrogates.
_HALVES = re.compile(
    rb"(\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)

# A high surrogate before a text's closing quote, and a low one after its opening quote.
_CUT_OFF = re.compile(rb"(?<!\\)((?:\\\\)*)(\\u[dD][89abAB][0-9a-fA-F]{2})(?=\")")
_GOES_ON = re.compile(rb'(?<!\\)"(?=\\u[dD][c-fC-F][0-9a-fA-F]{2})')


class HalfJoiner:
    """A joiner of character halves that a stream has in two JSON documents."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = b""  # that a document ended a text with

    def feed(self, document: bytes) -> bytes:
        """Return the document with the half held back before, and hold back a half at its end."""
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
    """Return JSON with U+FFFD for lone surrogates (an escape of `d83d`), `None` if unchanged."""
    mended = _HALVES.sub(_whole_or_unknown, text)
    return None if mended == text else mended


def _whole_or_unknown(found: re.Match[bytes]) -> bytes:
    return found[1] or rb"\ufffd"
