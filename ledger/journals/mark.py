"""The mark of a journal in file-backed memory: how far its worker has written it.

A frame missing at a journal's end was unfinished when its process died, or was written and lost by
the disk: the mark shows which. It is stored after each frame without a system call and outlives the
process. After a host crash it may be ahead of the disk, so after another boot only flushed numbers
count. After a remount within one boot (by mount id), it does not show what is missing. The file is
also the journal's lock. A mark is a frame's head with its checksum, stored in two places in turn,
so the previous one stays readable. A store into mapped memory raises SIGBUS if the file system has
no block for it. Memory is therefore mapped only if the file system writes in place; others (Btrfs,
ZFS, a reflinked XFS file) use a system call, which can fail.
"""

import ctypes
import fcntl
import mmap
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol
from uuid import UUID

from ledger.journals.layout import HEAD_BYTES, HEADER_BYTES, FrameKind, encode_head, parse_head

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_DEVICES, _FILE_SYSTEMS = Path("/sys/dev/block"), Path("/sys/fs")
_BTRFS_INFO, _BTRFS_INFO_BYTES = 0x8400_941F, 1024  # BTRFS_IOC_FS_INFO: its id is at 16
_BOOT_AT, _BOOT_BYTES = 2048, 64
_MOUNT_AT, _MOUNT_BYTES = 2112, 64  # zeros where an earlier version wrote it
_PLACES = tuple(slice(place, place + HEAD_BYTES) for place in range(0, 4 * HEAD_BYTES, HEAD_BYTES))
WRITTEN, FLUSHED = _PLACES[:2], _PLACES[2:]  # of even numbers, and of odd ones
NOTHING_YET = encode_head(b"", 0, 0, FrameKind.END)


_STATFS_BYTES = 256  # more than the structure has on any machine; its first word is the type
_IN_PLACE = frozenset({0xEF53, 0x01021994})  # types of file systems (statfs(2)): ext4, tmpfs


class MarkMemory(Protocol):
    """The block of a mark. A store raises `OSError` if the file system refuses it."""

    def __setitem__(self, place: slice, head: bytes) -> None: ...
    def close(self) -> None: ...


class WriteMark:
    """The writing side of a mark: heads of frames with growing sequence numbers.

    `memory` is that of the file. The writer of frame n stores its head at `WRITTEN[n & 1]`, which
    takes 0.2 us in mapped memory and 0.7 us by a system call.
    """

    def __init__(self, file: int) -> None:
        """Create the mark in an empty file. Raises `OSError` if the disk has no space."""
        block = bytearray(HEADER_BYTES)
        boot = read_boot_id().encode()[:_BOOT_BYTES]
        block[_BOOT_AT : _BOOT_AT + len(boot)] = boot
        mount = read_mount_id(file).encode()[:_MOUNT_BYTES]
        block[_MOUNT_AT : _MOUNT_AT + len(mount)] = mount
        for place in (WRITTEN[0], FLUSHED[0]):
            block[place] = NOTHING_YET
        os.pwrite(file, block, 0)
        os.fsync(file)  # a store into memory without a block behind it would end the process
        self.memory: MarkMemory = (
            mmap.mmap(file, HEADER_BYTES) if writes_in_place(file) else StoredBlock(file)
        )

    def record_flushed(self, head: bytes, sequence: int) -> None:
        """Store a flushed frame's head if there is space; an older head remains correct."""
        with suppress(OSError):
            self.memory[FLUSHED[sequence & 1]] = head

    def close(self) -> None:
        self.memory.close()


class StoredBlock:
    """A mark's block that is written by system calls; the caller owns the file."""

    def __init__(self, file: int) -> None:
        self._file = file

    def __setitem__(self, place: slice, head: bytes) -> None:
        os.pwrite(self._file, head, place.start)

    def close(self) -> None:
        return


def writes_in_place(file: int) -> bool:
    """Return whether changes to the file's own blocks need no new block; false if unknown."""
    found = ctypes.create_string_buffer(_STATFS_BYTES)
    if ctypes.CDLL(None).fstatfs(file, found):
        return False
    return ctypes.c_long.from_buffer(found).value in _IN_PLACE


class MarkReading(NamedTuple):
    """Sequence numbers of a mark, `None` if it is damaged or missing."""

    written: int | None
    flushed: int | None
    boot: str
    mount: str = ""

    def sure(self, boot: str) -> int | None:
        """Return the last number that must be in the journal, if read under the boot id `boot`."""
        return self.written if boot and boot == self.boot else self.flushed

    def is_remounted(self, boot: str, mount: str) -> bool:
        """Return whether the file system was remounted since then within the same boot."""
        is_same_boot = bool(boot) and boot == self.boot
        return is_same_boot and bool(mount and self.mount) and mount != self.mount


def read_boot_id() -> str:
    """Return the id of this boot, empty if the kernel has none."""
    try:
        return BOOT_ID.read_text("ascii").strip()
    except OSError:
        return ""


def read_mount_id(file: int) -> str:
    """Return an id that differs between mounts of a file system, or "" if there is none.

    ext4, XFS and Btrfs create a sysfs folder at mount, whose inode number repeats after 2 ** 32
    others. Bind mounts, and so restarted containers, share it.
    """
    device = os.fstat(file).st_dev
    with suppress(OSError):  # no block device: tmpfs, overlay, Btrfs; or no sysfs
        block = (_DEVICES / f"{os.major(device)}:{os.minor(device)}").resolve(strict=True)
        for kind in ("ext4", "xfs"):
            with suppress(OSError):
                return f"{block.name}:{(_FILE_SYSTEMS / kind / block.name).stat().st_ino}"
    told = bytearray(_BTRFS_INFO_BYTES)
    with suppress(OSError):
        fcntl.ioctl(file, _BTRFS_INFO, told)
        name = str(UUID(bytes=bytes(told[16:32])))
        return f"btrfs:{(_FILE_SYSTEMS / 'btrfs' / name).stat().st_ino}"
    return ""


def read_mark(path: Path) -> MarkReading:
    try:
        block = path.read_bytes()
    except FileNotFoundError:
        block = b""
    if len(block) < HEADER_BYTES:
        return MarkReading(None, None, "")
    boot, mount = (
        block[place : place + size].rstrip(b"\0").decode("ascii", "replace")
        for place, size in ((_BOOT_AT, _BOOT_BYTES), (_MOUNT_AT, _MOUNT_BYTES))
    )
    return MarkReading(_number(block, WRITTEN), _number(block, FLUSHED), boot, mount)


def _number(block: bytes, places: tuple[slice, ...]) -> int | None:
    heads = (parse_head(block, place.start, None) for place in places)
    return max((head.sequence for head in heads if head is not None), default=None)
