"""JSON as Python's servers and others write it where a strict reader fails, and what was meant.

Bare words for what is no number (`NaN`, `Infinity`), numbers that no machine holds, and halves of
characters. An answer that is mended is relayed as it came: its client may read it otherwise.
"""

import re

from backends.half_characters import whole_characters

# Strings are kept as they are.
_NO_NUMBER = re.compile(
    rb'("[^"\\]*+(?:\\.[^"\\]*+)*+")|-?\b(?:NaN|Infinity)\b|-?\b\d[\d.]*+[eE]\+?\d{3,}', re.DOTALL
)


def mend_json(text: bytes) -> bytes | None:
    """Return JSON with `null` for what is no number, and whole characters; None without any."""
    mended = whole_characters(text) or text
    mended = _NO_NUMBER.sub(_kept_or_null, mended)
    return None if mended == text else mended


def _kept_or_null(found: re.Match[bytes]) -> bytes:
    return found[1] or b"null"
