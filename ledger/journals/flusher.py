"""Making a journal's files durable without holding up the loop: by the kernel, or in a thread.

Linux takes an fdatasync as an asynchronous operation (`io_submit`, since 4.18) and tells of its end
through a file that the loop listens to: 14 us of CPU a round against 69 us with a thread, whose
every wake-up also costs the loop the interpreter's lock. Where the kernel, its version or a
sandbox does not take it, a thread does the same.
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
    """One round at a time."""

    def start_flush(
        self, files: Sequence[int], loop: asyncio.AbstractEventLoop, done: Done
    ) -> None:
        """Flush these files; `done` is called from the loop, with the first failure or None."""

    def close(self) -> None:
        """Returns when the round under way is over; its `done` still comes from the loop."""


def sync(files: Sequence[int]) -> None:
    for file in files:
        os.fdatasync(file)


def best() -> Flusher:
    """The kernel's way where there is one."""
    try:
        return KernelFlusher(AioContext())
    except OSError:
        return ThreadFlusher()


class ThreadFlusher:
    """One thread and one wake-up a round: an executor's future and a task cost more than both."""

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
        """The thread's work, until it is handed None."""
        while (given := self._rounds.get()) is not None:
            files, loop, done = given
            failure: OSError | None = None
            try:
                self._sync(files)
            except OSError as error:
                failure = error
            with suppress(RuntimeError):  # the loop was closed: nobody waits any more
                loop.call_soon_threadsafe(done, failure)


class KernelFlusher:
    """`aio` flushes; what it refuses, and all that comes later, goes to a thread."""

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
        """`ended`: an error's number for each file that was flushed, 0 for none."""
        self._left -= len(ended)
        for number in ended:
            if number and self._failure is None:
                self._failure = OSError(number, os.strerror(number))
