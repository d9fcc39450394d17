"""Flushing of journal files without blocking the event loop: by the kernel or a thread.

Linux runs an fdatasync as an asynchronous operation (`io_submit`, since 4.18) and signals its
completion by a file that the loop watches: 14 us of CPU per round, against 69 us with a thread,
whose wake-ups also take the interpreter's lock from the loop. Where the kernel, its version or a
sandbox refuses, a thread does the same.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import SimpleQueue
from threading import Thread
from typing import Protocol

from ledger.journals.aio import AioContext

Done = Callable[[OSError | None], None]
Sync = Callable[[Sequence[int]], None]
_Round = tuple[Sequence[int], asyncio.AbstractEventLoop, Done]


class Flusher(Protocol):
    """A flusher of files that runs one round at a time.

    `KernelFlusher` and `ThreadFlusher` implement it.
    """

    def start_flush(
        self, files: Sequence[int], loop: asyncio.AbstractEventLoop, done: Done
    ) -> None:
        """Flush these files. The loop calls `done` with the first failure or `None`."""

    def close(self) -> None:
        """Return when the current round is over; the loop still calls its `done`."""


def sync(files: Sequence[int]) -> None:
    for file in files:
        os.fdatasync(file)


def best() -> Flusher:
    """Return a `KernelFlusher` if the kernel supports it, else a `ThreadFlusher`."""
    try:
        return KernelFlusher(AioContext())
    except OSError:
        return ThreadFlusher()


class ThreadFlusher:
    """A flusher with one thread and one wake-up a round, cheaper than an executor and a task."""

    def __init__(self, sync: Sync = sync) -> None:
        self._sync = sync
        self._rounds: SimpleQueue[_Round | None] = SimpleQueue()
        self._thread: Thread | None = None

    def start_flush(
        self, files: Sequence[int], loop: asyncio.AbstractEventLoop, done: Done
    ) -> None:
        if self._thread is None:
            self._thread = Thread(target=self._run, name="journal", daemon=True)
            self._thread.start()
        self._rounds.put((files, loop, done))

    def close(self) -> None:
        if self._thread is not None:
            self._rounds.put(None)
            self._thread.join()

    def _run(self) -> None:
        """Run rounds in the thread until it receives `None`."""
        while (given := self._rounds.get()) is not None:
            files, loop, done = given
            failure: OSError | None = None
            try:
                self._sync(files)
            except OSError as error:
                failure = error
            with suppress(RuntimeError):  # the loop was closed: no task waits any more
                loop.call_soon_threadsafe(done, failure)


class KernelFlusher:
    """A flusher that uses `aio`. Once the kernel refuses a round, a thread does all rounds."""

    def __init__(self, aio: AioContext, instead: Flusher | None = None) -> None:
        self._aio = aio
        self._instead = instead or ThreadFlusher()
        self._refused = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._left = 0  # files of the round under way that are not flushed
        self._failure: OSError | None = None
        self._done: Done | None = None

    def start_flush(
        self, files: Sequence[int], loop: asyncio.AbstractEventLoop, done: Done
    ) -> None:
        if self._loop is not loop:
            self._loop = loop
            loop.add_reader(self._aio.told, self._reap)
        if not self._refused:
            try:
                for file in files:
                    self._aio.fdatasync(file)
                    self._left += 1
            except OSError:  # what it is, the thread finds out; what was begun ends unheard
                self._refused = True
            else:
                self._failure, self._done = None, done
                return
        self._instead.start_flush(files, loop, done)

    def close(self) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop was closed
                self._loop.remove_reader(self._aio.told)
        while self._left:
            self._count(self._aio.reap_operations(wait=True))
        done, self._done = self._done, None
        if done is not None and self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon(done, self._failure)
        self._aio.close()
        self._instead.close()

    def _reap(self) -> None:
        self._count(self._aio.reap_operations(wait=False))
        done = self._done
        if self._left == 0 and done is not None:
            self._done = None
            done(self._failure)

    def _count(self, ended: Sequence[int]) -> None:
        """Count completed files; `ended` has an error number, or 0, for each."""
        self._left -= len(ended)
        for number in ended:
            if number and self._failure is None:
                self._failure = OSError(number, os.strerror(number))
