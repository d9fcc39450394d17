"""End records that found no disk space: kept in memory, in order, until they are written.

Some file systems free space late (Btrfs and others that write each change to a new block), so the
journal's reserve may not be available at once. While an end record waits, nothing else is written,
no new work is accepted, and the loop does not wait for a disk: a thread does blocking stores. If
the process dies, its attempts stay without an end, as after any crash.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

from ledger.journals.group_writer import DiskThread
from ledger.journals.write_behind import RETRY_S, JournalBroken, JournalFull

MOST_BYTES = 4 * 1024 * 1024  # thousands of endings: more attempts than a worker has in flight

Written = Callable[[], None]


class OwedEndings:
    """Queue of end records.

    `store` writes a payload, or raises `JournalFull` or `JournalBroken`. `waiting` holds payloads
    and the callback for each write. `lost` counts end records that cannot be written: too many
    waited, or the disk failed.
    """

    def __init__(self, store: Callable[[bytes], None]) -> None:
        self._store = store
        self._thread = DiskThread()
        self._bytes = self._stored = 0
        self._broken = self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self.waiting: deque[tuple[bytes, Written | None]] = deque()
        self.lost = 0

    def attach(self, loop: asyncio.AbstractEventLoop) -> None:
        """Set the loop for later writes; without a loop, no end record is kept."""
        self._loop = loop

    def add(self, payload: bytes, written: Written | None, *, waits: bool) -> None:
        """Keep an end record until it is written. `waits`: a store may block on a file system."""
        is_over = self._bytes + len(payload) > MOST_BYTES
        if is_over or self._loop is None or self._closed or self._broken:
            self.lost += 1
            raise JournalFull(f"{len(self.waiting)} endings wait for room on the disk")
        self._bytes += len(payload)
        self.waiting.append((payload, written))
        if len(self.waiting) == 1:
            self._loop.call_later(RETRY_S, self._retry, self._loop, waits)

    def close(self) -> None:
        """Return once no thread writes; `write_all` writes what still waits."""
        self._closed = True
        self._thread.close()
        self._take_stored()

    def write_all(self) -> None:
        """Write all waiting records in this thread. Raises the error of the first that fails."""
        try:
            self._write(tuple(self.waiting))
        finally:
            self._take_stored()

    def _retry(self, loop: asyncio.AbstractEventLoop, waits: bool) -> None:
        if self._closed:
            return
        attempt = partial(self._try, tuple(self.waiting))
        if waits:
            self._thread.start_work(attempt, loop, partial(self._end, loop, waits))
        else:
            attempt()
            self._end(loop, waits, None)

    def _end(self, loop: asyncio.AbstractEventLoop, waits: bool, _error: OSError | None) -> None:
        if self._closed:
            return
        self._take_stored()
        if self._broken:
            self.lost += len(self.waiting)
            self.waiting.clear()
        if self.waiting:
            loop.call_later(RETRY_S, self._retry, loop, waits)

    def _try(self, endings: tuple[tuple[bytes, Written | None], ...]) -> None:
        try:
            self._write(endings)
        except JournalFull:
            return
        except JournalBroken:
            self._broken = True

    def _write(self, endings: tuple[tuple[bytes, Written | None], ...]) -> None:
        for payload, _ in endings:
            self._store(payload)
            self._stored += 1

    def _take_stored(self) -> None:
        while self._stored:
            self._stored -= 1
            payload, written = self.waiting.popleft()
            self._bytes -= len(payload)
            if written is not None and not self._closed:
                written()
