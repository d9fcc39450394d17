"""Durable writes of a group of frames to its segment, while the event loop continues.

The kernel does it where allowed (`ledger.journals.uring`), by one system call that does not block
the loop. A thread does rare work and error handling, and everything if io_uring is refused:
creating a segment's file, flushing earlier writes, a full disk.
"""

import asyncio
import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

from ledger.journals.homes import segment_path, sync_directory
from ledger.journals.layout import SegmentHeader, encode_header
from ledger.journals.pending import FrameGroup
from ledger.journals.reserve import NO_SPACE, DiskReserve
from ledger.journals.uring import UringWrites

Done = Callable[[OSError | None], None]
Work = Callable[[], None]
STRANGE = ".strange"  # is added to the name of a file that stood where a segment has to


@dataclass(slots=True)
class SegmentWrite:
    """A group in flight. `file` is `None` until its segment is created, which `header` begins.

    `is_plain`: only the group must become durable. `is_refused`: the disk had no space, and the
    write may be retried; any other failure is final.
    """

    home: Path
    header: SegmentHeader
    file: int | None
    group: FrameGroup
    is_plain: bool
    is_refused: bool = False


class GroupWriter:
    """A writer of one group at a time. `uring` is `None` if the kernel lacks or refuses it."""

    def __init__(self, reserve: DiskReserve, uring: UringWrites | None) -> None:
        self._reserve = reserve
        self._uring = uring
        self._thread = DiskThread()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._write: SegmentWrite | None = None  # that the kernel has
        self._done: Done | None = None

    def start_write(self, write: SegmentWrite, loop: asyncio.AbstractEventLoop, done: Done) -> None:
        """Write a group. The loop calls `done` with the failure or `None`."""
        uring, file, group = self._uring, write.file, write.group
        if uring is None or file is None or not write.is_plain or not group.size:
            self._start_in_thread(write, loop, done)
            return
        if self._loop is not loop:
            self._loop = loop
            loop.add_reader(uring.told, self._reap)
        try:
            uring.start_write(file, group.address, group.size, group.offset)
        except OSError:
            self._start_in_thread(write, loop, done)
            return
        self._write, self._done = write, done

    def start_work(self, work: Work, loop: asyncio.AbstractEventLoop, done: Done) -> None:
        """Run other work that may block on the disk."""
        self._thread.start_work(work, loop, done)

    def close(self) -> None:
        """Return when the current work is over; the loop still calls its `done`."""
        uring, loop = self._uring, self._loop
        if uring is not None:
            if loop is not None:
                with suppress(RuntimeError):  # the loop was closed
                    loop.remove_reader(uring.told)
                if self._write is not None:
                    self._end(uring.ended(wait=True))
            uring.close()
        self._thread.close()

    def _start_in_thread(
        self, write: SegmentWrite, loop: asyncio.AbstractEventLoop, done: Done
    ) -> None:
        self._thread.start_work(lambda: write_group(write, self._reserve), loop, done)

    def _reap(self) -> None:
        write, done, uring = self._write, self._done, self._uring
        if write is None or done is None or uring is None:
            return
        result = uring.ended(wait=False)
        if result == write.group.size:
            self._write = None
            done(None)
        else:
            self._end(result)

    def _end(self, result: int | None) -> None:
        write, done, loop = self._write, self._done, self._loop
        if result is None or write is None or done is None or loop is None:
            return
        self._write = None
        if result == write.group.size:
            done(None)
        elif result >= 0 or -result in NO_SPACE:  # written once more as a whole, which is flushed
            self._start_in_thread(write, loop, done)
        else:
            done(OSError(-result, os.strerror(-result)))


class DiskThread:
    """A thread that runs work on a disk in order. It starts with the first work."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[tuple[Work, asyncio.AbstractEventLoop, Done] | None]
        self._queue = SimpleQueue()
        self._thread: Thread | None = None

    def start_work(self, work: Work, loop: asyncio.AbstractEventLoop, done: Done) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._run, name="journal", daemon=True)
            self._thread.start()
        self._queue.put((work, loop, done))

    def close(self) -> None:
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join()

    def _run(self) -> None:
        """Run work in the thread until it receives `None`."""
        while (given := self._queue.get()) is not None:
            work, loop, done = given
            failure: OSError | None = None
            try:
                work()
            except OSError as error:
                failure = error
            with suppress(RuntimeError):  # the loop was closed: no task waits any more
                loop.call_soon_threadsafe(done, failure)


def write_group(write: SegmentWrite, reserve: DiskReserve) -> None:
    """Write and flush a group, using the disk reserve on a full disk. Raises `OSError`."""
    write.is_refused = False
    try:
        _write_whole(write)
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        try:
            reserve.release()
            _write_whole(write)
        except OSError as second:
            write.is_refused = second.errno in NO_SPACE
            raise
    assert write.file is not None
    os.fdatasync(write.file)


def create_segment(home: Path, header: SegmentHeader, flags: int = 0) -> int:
    """Create a segment's file with its header, durably. Raises `OSError`, leaving no file.

    The file is locked while it is open: deleting the journal's lock file does not release a live
    journal.
    """
    path = segment_path(home, header.segment)
    if os.path.lexists(path):  # a foreign file: no other worker writes here
        path.rename(path.with_name(f"{path.name}{STRANGE}"))
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | flags, 0o600)
    try:
        with suppress(OSError):  # where the file system has no locks, the lock file alone counts
            fcntl.flock(file, fcntl.LOCK_EX)  # a reader that looks holds it for microseconds
        _pwrite_whole(file, memoryview(encode_header(header)), 0)
        os.fdatasync(file)
        sync_directory(home)
    except OSError:
        os.close(file)
        path.unlink()
        raise
    return file


def _write_whole(write: SegmentWrite) -> None:
    if write.file is None:
        write.file = create_segment(write.home, write.header)
    with write.group.data as data:
        _pwrite_whole(write.file, data, write.group.offset)


def _pwrite_whole(file: int, data: memoryview, offset: int) -> None:
    written = 0
    while written < len(data):
        written += os.pwrite(file, data[written:], offset + written)
