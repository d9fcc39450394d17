"""Frames that a worker has written to memory, but not yet to its journal's segments.

The memory is a mapped file next to the segments, so its content outlives the process without system
calls. Two halves alternate: new frames go to one while the other is written to its segment. A half
begins with the segment place of its first frame; the frames follow as in the segment. Frames of
earlier turns behind them have lower numbers. Segments are never mapped, and this file is only
written through memory: the result of mixing both is undefined on some file systems. Memory is
mapped only if `writes_in_place`; elsewhere a full disk would end the process (SIGBUS).
"""

import ctypes
import mmap
import os
import struct
import zlib
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

from ledger.journals.layout import HEAD_BYTES, SYNC, parse_head, whole_payload
from ledger.journals.mark import writes_in_place

PENDING_FILE = "pending"
HALF_BYTES = 4 * 1024 * 1024
_MAGIC = b"BRKVPEND"
_GROUP = struct.Struct("<8sQQQ")  # magic, segment, offset of the first frame, its number
_CHECK = struct.Struct("<I")
_CHECKED = struct.Struct(f"<{_GROUP.size}sI")  # a head with its CRC-32 in one step
GROUP_BYTES = 64  # a group's head
ROOM_BYTES = HALF_BYTES - GROUP_BYTES
_HOT_BYTES = 64 * 1024  # of each half: most groups are shorter
_READ_BYTES = 256 * 1024


class FrameGroup:
    """The frames of one half for `offset` of a segment, until they are durable there.

    There is one object per half, reused: a new one for each group would cost as much as two frames.
    """

    __slots__ = ("_start", "_view", "address", "offset", "segment", "size")

    def __init__(self, view: memoryview, start: int, address: int) -> None:
        """Use `view`, the memory of both halves, in which the first frame is at `start`."""
        self._view, self._start = view, start
        self.address = address
        self.segment = self.offset = self.size = 0

    @property
    def data(self) -> memoryview:
        return self._view[self._start : self._start + self.size]


class PendingFrames:
    """The writing side, for one thread. `size` counts bytes of frames that no group contains.

    A writer that has checked `room_bytes` stores a frame in `memory` at `end`, then moves `end` and
    `size`; a method call would cost as much as the store.
    """

    def __init__(self, file: int) -> None:
        self._file = file
        self.memory = mmap.mmap(file, 2 * HALF_BYTES)
        self._view = memoryview(self.memory)
        address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        starts = (GROUP_BYTES, HALF_BYTES + GROUP_BYTES)
        self.group, self._other = (
            FrameGroup(self._view, start, address + start) for start in starts
        )
        self.end, self._other_start = starts  # of what this half has; of the other's frames
        self.size = 0

    @classmethod
    def make(cls, home: Path) -> Self | None:
        """Create the file; `None` if it cannot be mapped safely, or the disk has no space."""
        path = home / PENDING_FILE
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            if writes_in_place(file):
                os.posix_fallocate(file, 0, 2 * HALF_BYTES)
                for start in (0, HALF_BYTES):
                    os.pwrite(file, bytes(_HOT_BYTES), start)
                os.fsync(file)
                return cls(file)
        except OSError:
            pass
        os.close(file)
        path.unlink()
        return None

    @property
    def room_bytes(self) -> int:
        return ROOM_BYTES - self.size

    def begin_group(self, segment: int, offset: int, first: int) -> None:
        """Set the segment place of the next frame, number `first`, in an empty half."""
        group = self.group
        group.segment, group.offset = segment, offset
        head = _GROUP.pack(_MAGIC, segment, offset, first)
        _CHECKED.pack_into(self.memory, self.end - GROUP_BYTES, head, zlib.crc32(head))

    def take_group(self) -> FrameGroup:
        """Return the frames put since the last call, and switch to the other, free half."""
        group = self.group
        group.size = size = self.size
        self.group, self._other = self._other, group
        self.end, self._other_start = self._other_start, self.end - size
        self.size = 0
        return group

    def close(self, *, is_drained: bool) -> None:
        """Release the memory, after all groups. Frames in no segment stay in the file."""
        self._view.release()
        with suppress(BufferError):
            self.memory.close()
        if is_drained:
            with suppress(OSError):  # a full disk refuses even that: the numbers tell readers
                os.ftruncate(self._file, 0)
        os.close(self._file)


class PendingGroup(NamedTuple):
    """Bytes for `offset` of a segment, beginning with frame number `first`."""

    segment: int
    offset: int
    first: int
    data: bytes

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


_GroupReading = tuple[PendingGroup, int, int]  # how many frames it has, where its half begins


def read_groups(path: Path, *, is_dead: bool, written: int | None = None) -> list[PendingGroup]:
    """Return a worker's pending groups in order; none without the file.

    For a live worker: whole frames up to the first that is not. For a dead worker, which had stored
    frames up to `written`: all up to the last whole frame; damage between them is reported as
    damage of the segment.
    """
    try:
        file = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return []
    try:
        read = [_read_group(file, half * HALF_BYTES) for half in range(2)]
        found = sorted(each for each in read if each is not None)
        if is_dead and not _is_complete(found, written):
            found = sorted(_read_deeper(file, *each) for each in found)
    finally:
        os.close(file)
    return [group for group, _, _ in found if group.data]


def _is_complete(found: list[_GroupReading], written: int | None) -> bool:
    """Return whether the groups are consecutive up to the last stored frame."""
    if not found or written is None:
        return not found
    ends = [group.first + count for group, count, _ in found]
    return ends[-1] > written and all(
        end == later[0].first for end, later in zip(ends, found[1:], strict=False)
    )


def _read_group(file: int, start: int) -> _GroupReading | None:
    block = os.pread(file, _READ_BYTES, start)
    group = _parse_group(block)
    if group is None:
        return None
    segment, offset, first = group
    length, count, is_cut = _whole_bytes(block, first)
    if is_cut:
        block = os.pread(file, HALF_BYTES, start)
        if _parse_group(block) != group:  # a newer turn has begun: its segment has these frames
            return None
        length, count, _ = _whole_bytes(block, first)
    return PendingGroup(segment, offset, first, block[GROUP_BYTES:length]), count, start


def _read_deeper(file: int, group: PendingGroup, count: int, start: int) -> _GroupReading:
    block = os.pread(file, HALF_BYTES, start)
    end = _last_whole(block, GROUP_BYTES + len(group.data), group.first)
    return group._replace(data=block[GROUP_BYTES:end]), count, start


def _parse_group(block: bytes) -> tuple[int, int, int] | None:
    if len(block) < GROUP_BYTES or _CHECK.unpack_from(block, _GROUP.size)[0] != zlib.crc32(
        block[: _GROUP.size]
    ):
        return None
    magic, segment, offset, first = _GROUP.unpack_from(block)
    return (segment, offset, first) if magic == _MAGIC else None


def _whole_bytes(block: bytes, first: int) -> tuple[int, int, bool]:
    """Return the end of consecutive frames from `first`, their count, and if one is cut off."""
    place, count = GROUP_BYTES, 0
    while (head := parse_head(block, place, None)) is not None and head.sequence == first + count:
        end = place + HEAD_BYTES + head.length
        if whole_payload(block, place, head) is None:
            return place, count, end > len(block)
        place, count = end, count + 1
    return place, count, place + HEAD_BYTES > len(block)


def _last_whole(block: bytes, place: int, first: int) -> int:
    """Return the end of the last whole frame after `place` that is not of an earlier turn."""
    end = place
    while (place := block.find(SYNC, place)) >= 0:
        head = parse_head(block, place, None)
        if head is None or head.sequence < first or whole_payload(block, place, head) is None:
            place += 1
            continue
        place += HEAD_BYTES + head.length
        end = place
    return end
