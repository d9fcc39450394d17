"""Files that a request names in members besides its prompt, or by URL within a text.

A target opens them and charges for what it reads, at most its context.
"""

import re
from typing import Final

from gateway.http.body import Members, holds

# Vendors' members for files, pictures and films; `audio` is about the answer.
_NAMES: Final = frozenset((
    "attachments", "audio_urls", "audios", "file", "file_id", "file_ids", "file_url", "file_urls",
    "files", "image", "image_data", "image_url", "image_urls", "images", "media", "multimodal_data",
    "pdf", "video", "video_url", "video_urls", "videos",
))  # fmt: skip
_NOTHING: Final = (b"null", b"false", b'""', b"[]", b"{}")
_ESCAPE: Final = b"\\u00"
_ESCAPED: Final = re.compile(rb"\\u00(?:66|69|6[cC]|65|64|3[aA])")
_ADDRESS: Final = b"fileid:"  # DashScope's: a system message has `fileid://` and the file's id


def count_files(members: Members, prompt: bytes) -> int:
    """Return how many members name files; a prompt with file URLs counts as one."""
    found = 0
    if not _NAMES.isdisjoint(members):
        named = (bytes(members[name]) for name in _NAMES.intersection(members))
        found = sum(value not in _NOTHING for value in named)
    return found + _has_address(prompt)


def _has_address(prompt: bytes) -> bool:
    if holds(prompt, _ADDRESS):
        return True
    if not holds(prompt, _ESCAPE):
        return False
    # A text may write any of its letters as an escape.
    return _ESCAPED.search(prompt) is not None and _ADDRESS in _letters(prompt)


def _letters(text: bytes) -> bytes:
    """Return the text with escapes of ASCII letters decoded."""
    parts = text.split(_ESCAPE)
    return parts[0] + b"".join(_letter(part) + part[2:] for part in parts[1:])


def _letter(part: bytes) -> bytes:
    try:
        return bytes((int(part[:2], 16),))
    except ValueError:
        return part[:2]
