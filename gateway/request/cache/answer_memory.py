"""Shared memory of cached answers: each worker of a host writes its part and reads all.

A part is a ring of bytes with an index. There are no locks, as a part has one writer. A reader
trusts a copy only if its digest and checksum are right, so an entry that is being overwritten is
not found. The oldest entry is dropped first. The memory has no file (`memfd_create`): prompts and
answers reach no disk, and are gone when the host's processes end.
"""

import mmap
import os
import struct
from hashlib import blake2b
from typing import Final, NamedTuple

ANSWERS_FD: Final = "BREAKEVEN_ANSWERS_FD"  # environment variable with the descriptor's number
DIGEST_BYTES: Final = 32
CHECK_BYTES: Final = 16
_SLOT: Final = struct.Struct(f"<{DIGEST_BYTES}sQQQ")  # digest, place, length, stored_us
_CURSOR: Final = struct.Struct("<Q")  # total bytes that the writer has used
_HEAD_BYTES: Final = 64
WAYS: Final = 4  # slots that may hold a digest
_BUCKET_BYTES: Final = WAYS * _SLOT.size
_ENTRY_BYTES: Final = 2048  # of a typical answer; determines the size of the index
_PAGE: Final = mmap.PAGESIZE


class MemoryLayout(NamedTuple):
    """The layout of one worker's part: an index of `buckets`, then `ring_bytes`."""

    buckets: int
    ring_bytes: int

    @property
    def part_bytes(self) -> int:
        size = _HEAD_BYTES + self.buckets * _BUCKET_BYTES + self.ring_bytes
        return -(-size // _PAGE) * _PAGE


class FoundEntry(NamedTuple):
    """A stored entry; `stored_us` is by the wall clock of the worker that stored it."""

    stored_us: int
    data: bytes


def layout_of(total_bytes: int, workers: int) -> MemoryLayout:
    """Return the layout of each worker's part of `total_bytes`."""
    part = total_bytes // workers - _HEAD_BYTES - _PAGE
    buckets = max(1, part // (_ENTRY_BYTES * WAYS))
    return MemoryLayout(buckets, part - buckets * _BUCKET_BYTES)


def make_memory(total_bytes: int, workers: int) -> int:
    """Return the descriptor of memory for the workers; pages are allocated when used."""
    descriptor = os.memfd_create("breakeven-answers", os.MFD_CLOEXEC)
    os.ftruncate(descriptor, layout_of(total_bytes, workers).part_bytes * workers)
    return descriptor


class AnswerMemory:
    """One worker's view of the memory; without a descriptor, it is private to the process."""

    def __init__(self, descriptor: int | None, total_bytes: int, workers: int, worker: int) -> None:
        self._layout = layout_of(total_bytes, workers)
        self._part = self._layout.part_bytes
        size = self._part * workers
        self._map = mmap.mmap(-1 if descriptor is None else descriptor, size)
        self._starts = tuple(range(0, size, self._part))
        self._own = worker * self._part

    def close(self) -> None:
        self._map.close()

    def find(self, digest: bytes) -> FoundEntry | None:
        """Return the newest entry under this digest, from any worker's part."""
        best: FoundEntry | None = None
        at = self._bucket(digest)
        for start in self._starts:
            where = self._map.find(digest, start + at, start + at + _BUCKET_BYTES)
            while where >= 0 and (where - start - at) % _SLOT.size:
                where = self._map.find(digest, where + 1, start + at + _BUCKET_BYTES)
            if where >= 0:
                entry = self._read(start, where, digest)
                if entry is not None and (best is None or entry.stored_us > best.stored_us):
                    best = entry
        return best

    def store(self, digest: bytes, stored_us: int, data: bytes) -> bool:
        """Store an entry in this worker's part. Return False if it is larger than the part."""
        length, ring = CHECK_BYTES + len(data), self._layout.ring_bytes
        if length > ring:
            return False
        (cursor,) = _CURSOR.unpack_from(self._map, self._own)
        if cursor % ring + length > ring:  # no entry wraps around the end
            cursor += ring - cursor % ring
        # Before the bytes change, so that readers of the old entry see that it is gone.
        _CURSOR.pack_into(self._map, self._own, cursor + length)
        begin = self._ring(self._own) + cursor % ring
        self._map[begin : begin + length] = _check(digest, stored_us, data) + data
        _SLOT.pack_into(self._map, self._slot(digest), digest, cursor, length, stored_us)
        return True

    @property
    def used_bytes(self) -> int:
        """Return the bytes of this worker's ring that hold answers."""
        (cursor,) = _CURSOR.unpack_from(self._map, self._own)
        return min(int(cursor), self._layout.ring_bytes)

    def _bucket(self, digest: bytes) -> int:
        number = int.from_bytes(digest[:8], "little") % self._layout.buckets
        return _HEAD_BYTES + number * _BUCKET_BYTES

    def _ring(self, start: int) -> int:
        return start + _HEAD_BYTES + self._layout.buckets * _BUCKET_BYTES

    def _slot(self, digest: bytes) -> int:
        """Return the slot of the digest, else a free one, else that of the oldest entry."""
        bucket = self._own + self._bucket(digest)
        places = []
        for way in range(WAYS):
            at = bucket + way * _SLOT.size
            known, place, length, _ = _SLOT.unpack_from(self._map, at)
            if known == digest or not length:
                return at
            places.append((place, at))
        return min(places)[1]

    def _read(self, start: int, where: int, digest: bytes) -> FoundEntry | None:
        known, place, length, stored_us = _SLOT.unpack_from(self._map, where)
        ring = self._layout.ring_bytes
        if known != digest or length < CHECK_BYTES or place % ring + length > ring:
            return None
        begin = self._ring(start) + place % ring
        copied = self._map[begin : begin + length]
        (cursor,) = _CURSOR.unpack_from(self._map, start)
        if cursor > place + ring:
            return None  # its bytes are overwritten by another entry
        data = copied[CHECK_BYTES:]
        if copied[:CHECK_BYTES] != _check(digest, stored_us, data):
            return None
        return FoundEntry(stored_us, data)


def _check(digest: bytes, stored_us: int, data: bytes) -> bytes:
    made = blake2b(data, digest_size=CHECK_BYTES, key=digest)
    made.update(stored_us.to_bytes(8, "little"))
    return made.digest()
