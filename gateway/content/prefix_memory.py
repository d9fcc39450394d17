"""Remembers finds in the part of a conversation that was read before, per set of detectors.

A further turn repeats all before it byte for byte. So a conversation that was read is remembered by
its length and by a keyed checksum of its bytes (Poly1305 under a key of this process); a later one
that begins with it is read from there on. Nothing of a text is kept but its last characters, which
what is split over two turns needs.
"""

import os
from collections import OrderedDict
from typing import Final

import msgspec

ENTRIES: Final = 4096
LEAST_BYTES: Final = 2048  # shorter conversations are read again
SEARCHED: Final = 256  # ends of messages that are looked at, from the last one back


class ReadPrefix(msgspec.Struct, frozen=True):
    """Counts by kind of what was found, what could not be read, and the ends of the last texts."""

    found: dict[str, int]
    unread: int
    media: int
    tail: str  # of all texts
    spoken: str  # of what the user said
    brief: str = ""  # of short texts that may be pieces of a number


class ScannedBeginnings:
    """Remembers conversations by their encoded bytes, without the bracket that closes them."""

    def __init__(self) -> None:
        self._key = os.urandom(32)
        self._entries: OrderedDict[tuple[int, bytes], ReadPrefix] = OrderedDict()
        self._lengths: dict[int, int] = {}

    def find(self, raw: bytes) -> tuple[int, ReadPrefix] | None:
        """Return how far a conversation was read before, and what was found there."""
        if len(raw) < LEAST_BYTES or not self._lengths:
            return None
        end = len(raw)
        for _ in range(SEARCHED):
            end = raw.rfind(b"}", 0, end)
            if end < LEAST_BYTES - 1:
                return None
            if end + 1 in self._lengths:
                entry = self._entries.get((end + 1, self._sum(raw, end + 1)))
                if entry is not None:
                    return end + 1, entry
        return None

    def keep(self, raw: bytes, read: ReadPrefix) -> None:
        """Remember all of an encoded list but what closes it."""
        end = raw.rfind(b"}") + 1
        if end < LEAST_BYTES or raw[end:].strip() != b"]":
            return
        key = end, self._sum(raw, end)
        if key not in self._entries:
            self._lengths[end] = self._lengths.get(end, 0) + 1
        self._entries[key] = read
        self._entries.move_to_end(key)
        if len(self._entries) > ENTRIES:
            (length, _), _ = self._entries.popitem(last=False)
            self._lengths[length] -= 1
            if not self._lengths[length]:
                del self._lengths[length]

    def _sum(self, raw: bytes, end: int) -> bytes:
        from cryptography.hazmat.primitives.poly1305 import Poly1305  # noqa: PLC0415  (where content is looked for)

        return Poly1305.generate_tag(self._key, memoryview(raw)[:end])
