"""Answers that are read to their end after the client disconnected, to learn their usage.

The request's own task goes on reading, so its hold, its rows and the worker's drain do not change.
A read ends with the answer, or is cancelled after `READ_S`. At most `READS_LIMIT` run at once,
shared fairly by teams. If none is free, a team with at least two fewer reads than the largest takes
one of that team's. Within a team the largest holds are read, because a cancelled read is booked at
its bound.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Any, Protocol

from gateway.request.attempt import Attempt

READ_S = 30.0
READS_LIMIT = 64  # at once in a worker
# Limit for an answer in one piece, whose usage may stand anywhere. A stream keeps no text.
# Beyond this limit, as with pictures, all reads of a worker share `SHARED_LIMIT_BYTES`.
WHOLE_LIMIT_BYTES = 1024 * 1024
SHARED_LIMIT_BYTES = 128 * 1024 * 1024


class LeavableResponse(Protocol):
    """A response whose client may leave; implemented by `ClientResponse`.

    `on_leave` returns whether the task goes on without the client; `None` means that it does not.
    `keeps` returns whether so many bytes of an answer in one piece may be kept after the client
    left.
    """

    task: asyncio.Task[Any]
    on_leave: Callable[[], bool] | None
    keeps: Callable[[int], bool] | None


class BackgroundReads:
    """The background reads of one worker; `open` is how many are running."""

    def __init__(
        self,
        *,
        limit: int = READS_LIMIT,
        read_s: float = READ_S,
        shared_bytes: int = SHARED_LIMIT_BYTES,
    ) -> None:
        self.limit, self.read_s, self.shared_bytes = limit, read_s, shared_bytes
        self._reading: dict[BackgroundRead, None] = {}  # oldest first

    @property
    def open(self) -> int:
        return len(self._reading)

    def allow(self, response: LeavableResponse, attempt: Attempt) -> "BackgroundRead":
        """Return the context within which a disconnect turns the attempt into a background read."""
        return BackgroundRead(self, response, attempt)

    def take(self, read: "BackgroundRead") -> bool:
        """Start the read, perhaps in place of another. Return False if it must be cancelled."""
        if self.open >= self.limit:
            other = self._displaced_by(read)
            if other is None:
                return False
            other.cancel()
        self._reading[read] = None
        return True

    def has_room(self, read: "BackgroundRead", beyond: int) -> bool:
        """Return whether a read may keep `beyond` bytes above its own limit.

        The memory above the single limits is shared by the reads of a worker.
        """
        others = sum(each.beyond for each in self._reading if each is not read)
        return others + beyond <= self.shared_bytes

    def end(self, read: "BackgroundRead") -> None:
        self._reading.pop(read, None)

    def _displaced_by(self, read: "BackgroundRead") -> "BackgroundRead | None":
        """Return the read that gives way to `read`, or none.

        It is the smallest hold of the largest team, if that has at least two more reads, else a
        smaller hold of the same team.
        """
        places = Counter(each.team for each in self._reading)
        ours = places[read.team]
        richest = max(places, key=places.__getitem__, default=read.team)
        is_poor = places[richest] >= ours + 2
        team = richest if is_poor else read.team
        theirs = [each for each in self._reading if each.team == team]
        least = min(theirs, key=lambda each: each.held_pusd, default=None)
        if least is None or is_poor or least.held_pusd < read.held_pusd:
            return least
        return None


class BackgroundRead:
    """The context around one attempt whose target goes on after the client disconnects."""

    __slots__ = ("_reads", "_response", "_timer", "beyond", "held_pusd", "team")

    def __init__(
        self, reads: BackgroundReads, response: LeavableResponse, attempt: Attempt
    ) -> None:
        self._reads, self._response = reads, response
        self._timer: asyncio.TimerHandle | None = None
        self.beyond = 0  # bytes kept above its own limit
        self.team = attempt.plan.identity.team_id
        self.held_pusd = attempt.step.frozen.candidate.bound_pusd or 0

    def take(self) -> bool:
        """Let the task go on for `READ_S`. Return False if it must be cancelled."""
        if not self._reads.take(self):
            return False
        self._response.keeps = self.keeps
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._reads.read_s, self._response.task.cancel)
        return True

    def keeps(self, size: int) -> bool:
        """Claim memory for `size` bytes in all. Return False if other reads hold the memory."""
        beyond = max(0, size - WHOLE_LIMIT_BYTES)
        if beyond and not self._reads.has_room(self, beyond):
            return False
        self.beyond = beyond
        return True

    def cancel(self) -> None:
        """Cancel the read to free its place; the attempt is settled at its bound."""
        self._end()
        self._response.task.cancel()

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._reads.end(self)

    def __enter__(self) -> None:
        self._response.on_leave = self.take

    def __exit__(
        self, _: type[BaseException] | None, __: object, ___: TracebackType | None
    ) -> None:
        self._response.on_leave = self._response.keeps = None
        self._end()
