"""A disk in user space: a file that the kernel mounts a file system on, and that obeys orders.

    python fuse_disk.py IMAGE MOUNT-POINT FAULTS LOG

FUSE hands every read, write and flush of the file `MOUNT-POINT` to this program, whichever way
they were asked for: system calls, asynchronous direct I/O and mapped memory all end here. It keeps
the content in `IMAGE`, writes each write and flush to `LOG` in the order in which they were done
(`block_log` reads it), and before each it looks into `FAULTS` (`DiskFaults`) for what to do wrong.

It speaks the kernel's protocol itself, as far as one file needs it. Needs root and `/dev/fuse`.
"""

import ctypes
import errno
import mmap
import os
import struct
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

MOST_WRITE = 1024 * 1024
_FAULTS = struct.Struct("<IIIIQQ")
_ENTRY = struct.Struct("<cdQI")  # W or F, monotonic seconds when it was done, offset, length
_IN = struct.Struct("<IIQQIIII")
_OUT = struct.Struct("<IiQ")
_GETATTR, _SETATTR, _OPEN, _READ, _WRITE, _STATFS, _RELEASE = 3, 4, 14, 15, 16, 17, 18
_FSYNC, _FLUSH, _INIT, _DESTROY = 20, 25, 26, 38
_SILENT = frozenset({2, 36, 42})  # FORGET, INTERRUPT, BATCH_FORGET: nobody waits
_MS_NOSUID_NODEV = 6


class DiskFaults:
    """Orders to a disk, in a file that both sides map. All at rest: the disk is a good one."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(_FAULTS.size))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _FAULTS.size)

    def order(
        self, *, write_delay_us: int = 0, flush_delay_us: int = 0, write_error: int = 0,
        flush_error: int = 0, since: int = 0, until: int = 0,
    ) -> None:  # fmt: skip
        """Replace what was ordered. Errors are numbers of `errno`; writes fail in a range alone."""
        self._memory[:] = _FAULTS.pack(
            write_delay_us, flush_delay_us, write_error, flush_error, since, until
        )

    def read(self) -> tuple[int, int, int, int, int, int]:
        return _FAULTS.unpack(self._memory[:])


class DiskWrite(NamedTuple):
    """An entry of a log: a write of `size` bytes that lie at `place` of the log, or a flush."""

    log: Path
    at_s: float
    offset: int
    size: int
    place: int
    is_flush: bool

    def read(self) -> bytes:
        with self.log.open("rb") as file:
            file.seek(self.place)
            return file.read(self.size)


def read_log(log: Path) -> Iterator[DiskWrite]:
    """Yield what was done, in order. `at_s` of a flush lies before anybody heard of its end."""
    with log.open("rb") as file:
        while len(head := file.read(_ENTRY.size)) == _ENTRY.size:
            kind, at_s, offset, size = _ENTRY.unpack(head)
            yield DiskWrite(log, at_s, offset, size, file.tell(), kind == b"F")
            file.seek(size, os.SEEK_CUR)


class _Disk:
    def __init__(self, image: Path, faults: DiskFaults, log: Path) -> None:
        self._image = os.open(image, os.O_RDWR)
        self.size = os.fstat(self._image).st_size
        self._faults = faults
        self._log = log.open("ab", buffering=0)

    def read(self, offset: int, size: int) -> bytes:
        return os.pread(self._image, size, offset)

    def write(self, offset: int, data: bytes) -> None:
        delay_us, _, error, _, since, until = self._faults.read()
        time.sleep(delay_us / 1e6)
        if error and offset < (until or self.size) and offset + len(data) > since:
            raise OSError(error, os.strerror(error))
        os.pwrite(self._image, data, offset)
        self._log.write(_ENTRY.pack(b"W", time.monotonic(), offset, len(data)) + data)

    def flush(self) -> None:
        _, delay_us, _, error, _, _ = self._faults.read()
        time.sleep(delay_us / 1e6)
        if error:
            raise OSError(error, os.strerror(error))
        self._log.write(_ENTRY.pack(b"F", time.monotonic(), 0, 0))


def serve_disk(disk: _Disk, fuse: int) -> None:
    """Answer the kernel until the file is unmounted."""
    while True:
        try:
            request = os.read(fuse, MOST_WRITE + 4096)
        except OSError as error:
            if error.errno == errno.ENODEV:  # unmounted
                return
            if error.errno in (errno.EINTR, errno.ENOENT):
                continue
            raise
        size, operation, unique, *_ = _IN.unpack_from(request)
        if operation in _SILENT:
            continue
        try:
            number, answer = 0, _answer(disk, operation, request[_IN.size : size])
        except OSError as error:
            number, answer = -(error.errno or errno.EIO), b""
        try:
            os.write(fuse, _OUT.pack(_OUT.size + len(answer), number, unique) + answer)
        except OSError as error:
            if error.errno != errno.ENOENT:  # nobody waits any more
                raise
        if operation == _DESTROY:
            return


def _answer(disk: _Disk, operation: int, body: bytes) -> bytes:
    if operation == _INIT:
        _, _, ahead, _ = struct.unpack_from("<IIII", body)
        big_writes_and_pages = (1 << 5) | (1 << 22)
        return struct.pack("<IIIIHHIIHH8I", 7, 31, ahead, big_writes_and_pages, 16, 12,
                           MOST_WRITE, 1, MOST_WRITE // 4096, 0, *([0] * 8))  # fmt: skip
    if operation in (_GETATTR, _SETATTR):
        attributes = struct.pack("<QQQQQQIIIIIIIIII", 1, disk.size, disk.size // 512, 0, 0, 0,
                                 0, 0, 0, 0o100600, 1, 0, 0, 0, 4096, 0)  # fmt: skip
        return struct.pack("<QII", 3600, 0, 0) + attributes
    if operation == _OPEN:
        return struct.pack("<QII", 1, 2, 0)  # keep the cache: nobody else writes
    if operation == _READ:
        _, offset, size = struct.unpack_from("<QQI", body)
        return disk.read(offset, size)
    if operation == _WRITE:
        _, offset, size = struct.unpack_from("<QQI", body)
        disk.write(offset, body[40 : 40 + size])
        return struct.pack("<II", size, 0)
    if operation == _FSYNC:
        disk.flush()
        return b""
    if operation == _STATFS:
        return struct.pack("<QQQQQIII28x", disk.size // 4096, 0, 0, 1, 0, 4096, 255, 4096)
    if operation in (_FLUSH, _RELEASE, _DESTROY):
        return b""
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def mount_file(point: Path) -> int:
    """Mount on a file; return what the kernel is answered through. Raises `OSError`."""
    fuse = os.open("/dev/fuse", os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={fuse},rootmode=100000,user_id=0,group_id=0,max_read={MOST_WRITE}"
    if libc.mount(b"disk", str(point).encode(), b"fuse", _MS_NOSUID_NODEV, options.encode()):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(point))
    return fuse


def main(image: str, point: str, faults: str, log: str) -> None:
    disk = _Disk(Path(image), DiskFaults(Path(faults)), Path(log))
    fuse = mount_file(Path(point))
    print("mounted", flush=True)
    serve_disk(disk, fuse)


if __name__ == "__main__":
    main(*sys.argv[1:])
