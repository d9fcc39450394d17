"""Answers that are read on after their clients left, so that their usage is known.

The request's own task goes on reading: its hold, its rows and the drain of the worker stay as they
are, and nothing is handed over. A read ends at the answer's end, or is cancelled after a time;
of more reads than are allowed at once each further one is cancelled at once. Cancelled reads are
settled at their bound.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol

READ_S = 30.0
READS_LIMIT = 64  # at once in a worker
# Of an answer in one piece: its usage may stand anywhere in it. A stream keeps no text at all.
WHOLE_LIMIT_BYTES = 1024 * 1024


class LeavableResponse(Protocol):
    """A response whose client may leave: `ClientResponse`.

    `on_leave` says whether the task goes on without the client; `None`: it does not.
    """

    task: asyncio.Task[Any]
    on_leave: Callable[[], bool] | None


class BackgroundReads:
    """One per worker. `open`: how many answers are being read without a client."""

    def __init__(self, *, limit: int = READS_LIMIT, read_s: float = READ_S) -> None:
        self.limit, self.read_s = limit, read_s
        self.open = 0

    def allow(self, response: LeavableResponse) -> "BackgroundRead":
        """Return the context in which the response's client may leave its answer to us."""
        return BackgroundRead(self, response)


class BackgroundRead:
    """One attempt at a target that goes on without us: around all that is awaited of it."""

    __slots__ = ("_reads", "_response", "_timer")

    def __init__(self, reads: BackgroundReads, response: LeavableResponse) -> None:
        self._reads, self._response = reads, response
        self._timer: asyncio.TimerHandle | None = None

    def take(self) -> bool:
        """Let the task go on for a while. False: too many do, so it has to be cancelled."""
        reads = self._reads
        if reads.open >= reads.limit:
            return False
        reads.open += 1
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(reads.read_s, self._response.task.cancel)
        return True

    def __enter__(self) -> None:
        self._response.on_leave = self.take

    def __exit__(
        self, _: type[BaseException] | None, __: object, ___: TracebackType | None
    ) -> None:
        self._response.on_leave = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
            self._reads.open -= 1
