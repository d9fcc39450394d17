"""Halves of characters in JSON: escapes of one surrogate, which no decoder takes.

Servers that count a text in UTF-16 cut characters in two, and many clients join them again.
"""

import re

# Escapes: those of backslashes and whole pairs are kept, what is left is half of a character.
_HALVES = re.compile(
    rb"(\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}"
)


def whole_characters(text: bytes) -> bytes | None:
    """JSON with U+FFFD for halves of characters (an escape of `d83d` alone); `None` without any."""
    mended = _HALVES.sub(_whole_or_unknown, text)
    return None if mended == text else mended


def _whole_or_unknown(found: re.Match[bytes]) -> bytes:
    return found[1] or rb"\ufffd"
