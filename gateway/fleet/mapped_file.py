"""Memory-mapped files that the processes of a host share.

A write to a mapped page without a disk block ends the process with SIGBUS. So all blocks are
allocated before the file is mapped; on Btrfs copy-on-write is disabled for the file.
"""

import fcntl
import mmap
import os
import struct
from contextlib import suppress
from pathlib import Path

_GET_FLAGS, _SET_FLAGS = 0x80086601, 0x40086602  # FS_IOC_GETFLAGS, FS_IOC_SETFLAGS
_NO_COPY_ON_WRITE = 0x00800000  # FS_NOCOW_FL; can only be set on an empty file
_FLAGS = struct.Struct("l")
_BLOCK_BYTES = 512  # unit of `st_blocks`


def map_file(path: Path, size: int) -> mmap.mmap:
    """Map the first `size` bytes of a file; the file is created or extended with zeros.

    The file is never truncated: a process that maps more of it would be killed by SIGBUS.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        allocate_blocks(descriptor, size)
        if os.fstat(descriptor).st_size < size:
            os.ftruncate(descriptor, size)
        return mmap.mmap(descriptor, size)
    finally:
        os.close(descriptor)


def allocate_blocks(descriptor: int, size: int) -> None:
    """Allocate disk blocks for the first `size` bytes of a file, and extend it to that size.

    Raises `OSError` if the disk is full.
    """
    found = os.fstat(descriptor)
    if found.st_blocks * _BLOCK_BYTES >= size:
        return
    if found.st_size == 0:
        with suppress(OSError):  # file systems without this flag do not copy on write
            (flags,) = _FLAGS.unpack(fcntl.ioctl(descriptor, _GET_FLAGS, bytes(_FLAGS.size)))
            fcntl.ioctl(descriptor, _SET_FLAGS, _FLAGS.pack(flags | _NO_COPY_ON_WRITE))
    os.posix_fallocate(descriptor, 0, size)
