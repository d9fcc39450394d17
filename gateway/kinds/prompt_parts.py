"""Parts of a conversation whose tokens are not its bytes: sound, and files that a target opens.

They are found in the encoded text: a name there is a string of its own, for in a text its quotes
are escaped. JSON may write each letter of a name as an escape, which means the same to a target.
"""

import re
from functools import cache
from typing import Final

_ESCAPED: Final = b"\\u00"


class NamePattern:
    """Finds strings that are one of some names, in any spelling."""

    __slots__ = ("_hints", "_plain", "_spelled")

    def __init__(self, names: tuple[str, ...], behind: str = "") -> None:
        """`behind`: what follows the string, as a regular expression."""
        plain = "|".join(map(re.escape, names))
        spelled = "|".join("".join(map(_letter, name)) for name in names)
        self._hints = tuple(f'"{name}"'.encode() for name in names)
        self._plain = re.compile(f'"(?:{plain})"{behind}'.encode())
        self._spelled = re.compile(f'"(?:{spelled})"{behind}'.encode())

    def count(self, text: bytes) -> int:
        if _ESCAPED in text:
            return len(self._spelled.findall(text))
        if not any(hint in text for hint in self._hints):
            return 0
        return len(self._plain.findall(text))


def _letter(letter: str) -> str:
    hexadecimal = "".join(f"[{d}{d.upper()}]" if d.isalpha() else d for d in f"{ord(letter):02x}")
    return f"(?:{re.escape(letter)}|\\\\u00{hexadecimal})"


@cache
def spelled_name(name: str) -> NamePattern:
    return NamePattern((name,))


def is_named(pattern: NamePattern, text: bytes) -> bool:
    return pattern.count(text) > 0


# What was said before stands in a conversation as `audio` with its id.
_SOUND: Final = NamePattern(("input_audio", "audio_url", "audio"))
_FILES: Final = NamePattern(("file", "file_id", "file_url", "file_data", "document_url"), r"\s*+:")


_PREFIX: Final = NamePattern(("prefix",), r"\s*+:\s*+true")


def is_continued(prompt: bytes) -> bool:
    """Whether an answer goes on from a message's text, which Mistral and others then repeat."""
    return is_named(_PREFIX, prompt)


def sends_sound(prompt: bytes) -> bool:
    """Whether a part may be sound; a file may be, too."""
    return is_named(_SOUND, prompt) or count_files(prompt) > 0


def count_files(prompt: bytes) -> int:
    """How many files a target may open for the prompt, or more: their bytes say nothing."""
    return _FILES.count(prompt)
