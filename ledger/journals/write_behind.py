"""Appends that do not wait for a disk: frames go to mapped memory, in groups to segments.

What `put` has stored survives the process (`ledger.journals.pending`), and the ledger writer can
read it at once. What `flush` has waited for survives the host. The loop's thread does no file
operation: `ledger.journals.group_writer` does them. A full disk is noticed late, so a record is
accepted only if the disk reserve fits all that is pending and the end records of all open attempts.
"""

import asyncio
import math
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ledger.journals.group_writer import GroupWriter, SegmentWrite, write_group
from ledger.journals.homes import segment_path
from ledger.journals.layout import (
    HEAD_BYTES,
    HEADER_BYTES,
    FrameKind,
    SegmentHeader,
    encode_head,
    stamp_of,
)
from ledger.journals.mark import FLUSHED, WRITTEN, WriteMark
from ledger.journals.pending import ROOM_BYTES, PendingFrames
from ledger.journals.reserve import BYTES_PER_END, LEAST_BYTES, MOST_BYTES, DiskReserve

ROUND_S = 0.002  # minimum between two flush starts; later ends share the second
LAZY_S = 0.25  # until frames without a waiter are written
RETRY_S = 0.2  # between two tries on a full disk
LOOK_S = 0.05  # between two looks for room
HASTE_BYTES = 1024 * 1024  # so much is written at once, whether anybody waits or not
ENDS_BYTES = 2 * 1024 * 1024  # of memory are kept for ends at most
EASE_BYTES = ROOM_BYTES - ENDS_BYTES


class JournalError(Exception):
    """Base of all errors of a journal."""


class JournalFull(JournalError):
    """No space: accept no new work until the ledger writer catches up or the disk has space."""


class JournalBroken(JournalError):
    """The disk failed: data since the last flush may be lost, and nothing is accepted."""


@dataclass(slots=True)
class SegmentPlace:
    """The place of the next frame.

    `offset` counts bytes of frames; `head` is the last frame's.
    """

    home: Path
    name: str
    file: int
    number: int
    offset: int
    sequence: int
    head: bytes

    @property
    def path(self) -> Path:
        return segment_path(self.home, self.number)


class WriteBehind:
    """One process's journal while a loop runs. `retire` is called with each full segment."""

    def __init__(
        self,
        place: SegmentPlace,
        pending: PendingFrames,
        writer: GroupWriter,
        mark: WriteMark,
        reserve: DiskReserve,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.place = place
        self.broken: OSError | None = None
        self.is_drained = False  # all that was put is in segments, once it is closed
        self.segment_bytes = math.inf
        self.retire: Callable[[Path, int], None] = lambda _path, _size: None
        self._begin_header(place.sequence + 1)
        self._pending, self._writer, self._mark, self._reserve = pending, writer, mark, reserve
        self._memory = mark.memory  # mapped: no store is refused
        self._loop, self._now_s = loop, loop.time
        self._file_number = place.number  # of the segment that is open
        self._is_synced = False  # what was written before it, without a flush
        self._write: SegmentWrite | None = None  # under way, or refused by a full disk
        self._any_write = SegmentWrite(
            place.home, self._header, place.file, pending.group, is_plain=False
        )
        self._told = (place.head, place.sequence)  # the last frame of it
        self._taken: list[asyncio.Future[None]] = []  # waiters of this round
        self._waiting: list[asyncio.Future[None]] = []  # waiters of the next round
        self._soon: asyncio.Handle | None = None  # the next round, if it has waiters
        self._lazy: asyncio.Handle | None = None
        self._round_s = -math.inf
        self._looking, self._looked_s = False, -math.inf
        self._reason: str | None = None  # why the disk has no room, as last known
        self._closed = False
        self._ended = self._end_round  # bound once

    def put(self, payload: bytes) -> None:
        """Store a record. Raises `JournalFull` if memory has no space for it."""
        if self.broken is not None:
            raise JournalBroken(f"{self.place.home}: {self.broken.strerror}") from self.broken
        place, pending = self.place, self._pending
        size, held = HEAD_BYTES + len(payload), pending.size
        if held + size > ROOM_BYTES:
            raise JournalFull(f"{place.home}: {held} bytes wait for the disk")
        sequence = place.sequence + 1
        if not held:
            if place.offset >= self.segment_bytes:
                self._begin_segment(sequence)
            pending.begin_group(place.number, HEADER_BYTES + place.offset, sequence)
        head = encode_head(payload, sequence, self._stamp, FrameKind.RECORD)
        end = pending.end + size
        pending.memory[pending.end : end] = head + payload
        pending.end, pending.size = end, held + size
        self._memory[WRITTEN[sequence & 1]] = head
        place.offset += size
        place.sequence, place.head = sequence, head
        if held + size >= HASTE_BYTES:
            self._plan_round()
        elif self._lazy is None:
            self._lazy = self._loop.call_later(LAZY_S, self._start_lazily)

    def refusal(self, size: int, unended: int) -> str | None:
        """Return why a record of this size would be refused, with `unended` attempts open."""
        kept, pending = self._reserve.kept_bytes, self._pending.size
        if kept == MOST_BYTES and self._reason is None and pending + size <= EASE_BYTES:
            return None
        waiting = pending + (0 if self._write is None else self._write.group.size)
        ends = (unended + 1) * BYTES_PER_END
        if self._pending.room_bytes < size + min(ends, ENDS_BYTES):
            return f"{waiting} bytes wait for the disk"
        if kept == MOST_BYTES and self._reason is None:
            return None
        needed = min(max(LEAST_BYTES, ends + waiting + size), MOST_BYTES)
        if kept < min(2 * needed, MOST_BYTES) or self._reason is not None:
            self._look_for_room(needed)
        if self._reason is not None:
            return self._reason
        return "no room is kept on the disk" if kept < needed else None

    def start_flush(self) -> asyncio.Future[None]:
        """Return a future that is done when all stored records are on the disk."""
        if self.broken is not None:
            raise JournalBroken(f"{self.place.home}: {self.broken.strerror}") from self.broken
        waiter = self._loop.create_future()
        self._waiting.append(waiter)
        if self._soon is None and self._write is None:
            self._plan_round()
        return waiter

    def close(self) -> None:
        """Write all that is pending; waiters fail, except those of the current round."""
        self._closed = True
        for planned in (self._soon, self._lazy):
            if planned is not None:
                planned.cancel()
        tell_waiters(self._waiting, JournalBroken("the journal was closed"))
        self._writer.close()
        if self.broken is None:
            with suppress(OSError):  # what a full disk refuses stays in the file, and is read there
                self._drain()
                self.is_drained = True
        self._pending.close(is_drained=self.is_drained)

    def _drain(self) -> None:
        for _ in range(2):
            if self._write is None and self._pending.size:
                self._write = self._next_write()
            if self._write is not None:  # once more, if its end is not told yet: the same bytes
                try:
                    write_group(self._write, self._reserve)
                finally:
                    self._adopt_file(self._write)
                self._write = None
        self._mark.record_flushed(self.place.head, self.place.sequence)

    def _begin_segment(self, first: int) -> None:
        place = self.place
        self.retire(place.path, place.offset)
        place.number, place.offset = place.number + 1, 0
        self._begin_header(first)

    def _begin_header(self, first: int) -> None:
        place = self.place
        self._header = SegmentHeader(place.name, place.number, 1, first)
        self._stamp = stamp_of(place.name, place.number)

    def _plan_round(self) -> None:
        """Plan a round for the attempts that end in this turn, or under load soon after.

        A flush costs a tenth of a request; under load many records share that cost.
        """
        if self._soon is not None or self._write is not None:
            return
        wait_s = self._round_s + ROUND_S - self._now_s()
        if wait_s > 0.0:
            self._soon = self._loop.call_later(wait_s, self._start_round)
        else:
            self._soon = self._loop.call_soon(self._start_round)

    def _start_lazily(self) -> None:
        self._lazy = None
        if self._pending.size:
            self._plan_round()

    def _start_round(self) -> None:
        self._soon = None
        self._round_s, place = self._now_s(), self.place
        self._taken, self._waiting = self._waiting, []
        self._told = (place.head, place.sequence)
        self._write = self._next_write()
        self._writer.start_write(self._write, self._loop, self._ended)

    def _next_write(self) -> SegmentWrite:
        place, group = self.place, self._pending.take_group()
        is_open = not group.size or group.segment == self._file_number
        write = self._any_write  # used again: the one before has ended
        write.header, write.group = self._header, group
        write.file = place.file if is_open else None
        write.is_plain, write.is_refused = self._is_synced, False
        return write

    def _end_round(self, error: OSError | None) -> None:
        write, taken = self._write, self._taken
        if self._closed or write is None:
            if error is not None and write is not None and not write.is_refused:
                self.broken = error
            self._tell(taken, error)
            return
        if write.file != self.place.file:
            self._adopt_file(write)
        self._taken = []
        if error is not None:
            self._fail_round(write, taken, error)
            return
        head, sequence = self._told
        self._memory[FLUSHED[sequence & 1]] = head
        self._is_synced = True
        self._write = None
        for waiter in taken:
            if not waiter.done():
                waiter.set_result(None)
        if self._waiting or self._pending.size >= HASTE_BYTES:
            self._plan_round()
        elif self._pending.size and self._lazy is None:
            self._lazy = self._loop.call_later(LAZY_S, self._start_lazily)

    def _fail_round(
        self, write: SegmentWrite, taken: list[asyncio.Future[None]], error: OSError
    ) -> None:
        if write.is_refused:
            self._reason = error.strerror
            self._loop.call_later(RETRY_S, self._retry)
        else:
            # After a failed flush the kernel may drop the pages: a retry could succeed falsely.
            self.broken = error
        waiting, self._waiting = self._waiting, []
        self._tell([*taken, *waiting], error)

    def _retry(self) -> None:
        if not self._closed and self._write is not None:
            self._writer.start_write(self._write, self._loop, self._ended)

    def _adopt_file(self, write: SegmentWrite) -> None:
        """Continue in the segment that a write has created."""
        if write.file is None or write.file == self.place.file:
            return
        before, self.place.file = self.place.file, write.file
        self._file_number = write.group.segment
        if self._closed:
            os.close(before)
        else:
            self._writer.start_work(partial(os.close, before), self._loop, lambda _error: None)

    def _look_for_room(self, needed: int) -> None:
        """Extend the reserve to `needed` bytes; a refused write is retried first."""
        refused = self._write is not None and self._write.is_refused
        now_s = self._now_s()
        if self._looking or self._closed or refused or now_s < self._looked_s + LOOK_S:
            return
        self._looking, self._looked_s = True, now_s
        is_full = self._reason is not None

        def look() -> None:
            with suppress(OSError):  # reserved ahead of need, so that no request is refused for it
                self._reserve.keep(2 * needed // BYTES_PER_END)
            self._reserve.keep(-(-needed // BYTES_PER_END))
            if is_full:
                self._reserve.probe()

        def seen(error: OSError | None) -> None:
            self._looking = False
            self._reason = None if error is None else error.strerror

        self._writer.start_work(look, self._loop, seen)

    def _tell(self, waiters: list[asyncio.Future[None]], error: OSError | None) -> None:
        if error is None:
            tell_waiters(waiters)
            return
        kind = JournalBroken if self.broken is not None else JournalFull
        tell_waiters(waiters, kind(f"{self.place.home}: {error.strerror}"))


def tell_waiters(waiters: list[asyncio.Future[None]], error: JournalError | None = None) -> None:
    """Complete the waiters that were not cancelled, with `error` if there is one."""
    for waiter in waiters:
        if waiter.done():
            continue
        if error is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(error)
