"""Repair of invalid JSON as Python's and other servers write it.

It replaces bare words for numbers (`NaN`, `Infinity`), numbers out of range, and single surrogates.
A repaired answer is still relayed unchanged, because its client may read it in another way.
"""

import re

from backends.half_characters import whole_characters

# Strings are kept unchanged.
_NO_NUMBER = re.compile(
    rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")|-?\b(?:NaN|Infinity)\b|-?\b\d[\d.]*+[eE]\+?\d{3,}', re.DOTALL
)


def mend_json(text: bytes) -> bytes | None:
    """Return JSON with `null` for invalid numbers and whole characters, `None` if unchanged."""
    mended = whole_characters(text) or text
    mended = _NO_NUMBER.sub(_kept_or_null, mended)
    return None if mended == text else mended


def _kept_or_null(found: re.Match[bytes]) -> bytes:
    return found[1] or b"null"
