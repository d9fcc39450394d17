"""Maps a file that processes of a host share.

A store into mapped memory for which the file system finds no block ends the process (SIGBUS). So
every block is allocated before the file is mapped, and on Btrfs it is written in place.
"""

import fcntl
import mmap
import os
import struct
from contextlib import suppress
from pathlib import Path

_GET_FLAGS, _SET_FLAGS = 0x80086601, 0x40086602  # FS_IOC_GETFLAGS, FS_IOC_SETFLAGS
_NO_COPY_ON_WRITE = 0x00800000  # FS_NOCOW_FL, which only an empty file takes
_FLAGS = struct.Struct("l")
_BLOCK_BYTES = 512  # in which `st_blocks` counts


def map_file(path: Path, size: int) -> mmap.mmap:
    """Return so many bytes of the file, made with zeros where it has fewer.

    It is never cut: to a process that maps more of it, what is missing would be a fatal signal.
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
    """Have a block behind each of so many bytes of the file, which grows to that.

    Raises `OSError` where the disk is full.
    """
    found = os.fstat(descriptor)
    if found.st_blocks * _BLOCK_BYTES >= size:
        return
    if found.st_size == 0:
        with suppress(OSError):  # a file system that has no such flag copies nothing
            (flags,) = _FLAGS.unpack(fcntl.ioctl(descriptor, _GET_FLAGS, bytes(_FLAGS.size)))
            fcntl.ioctl(descriptor, _SET_FLAGS, _FLAGS.pack(flags | _NO_COPY_ON_WRITE))
    os.posix_fallocate(descriptor, 0, size)
