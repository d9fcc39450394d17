"""Tails every worker's journal from a position, and removes the segments that are applied.

A journal whose owner is gone will not grow: its last segment counts as sealed, and once all of it
is applied and its open attempts are settled, the whole directory goes.
"""

import shutil
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ledger.journals.frames import FRAME_LIMIT_BYTES, Frame, decode
from ledger.journals.journal import OWNER_FILE, number_of, segments
from ledger.locks import is_locked

READ_BYTES = 4 * 1024 * 1024  # at most this much of a journal is in memory at once


@dataclass(frozen=True, slots=True, order=True)
class JournalOffset:
    """Everything before `offset` of `segment` is applied."""

    segment: int = 0
    offset: int = 0


@dataclass(frozen=True, slots=True)
class JournalSource:
    """`name` identifies the journal in the books: the worker's name and an id per process."""

    name: str
    worker: str
    home: Path


@dataclass(frozen=True, slots=True)
class JournalChunk:
    """What can be read from a position on: frames of `after`'s segment.

    `after` may be ahead of the last frame. `more`: as much as was asked for, or a later segment
    exists.
    """

    frames: tuple[Frame, ...]
    after: JournalOffset
    more: bool = False


class JournalReader:
    """Reads all journals under one directory; the owner's lock is probed, never kept."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def journals(self) -> list[JournalSource]:
        homes = sorted(owner.parent for owner in self._directory.glob(f"[!.]*/{OWNER_FILE}"))
        return [JournalSource(home.name, home.name.rpartition("-")[0], home) for home in homes]

    def read(
        self,
        journal: JournalSource,
        since: JournalOffset,
        *,
        limit_bytes: int = READ_BYTES,
        most: int | None = None,
    ) -> JournalChunk:
        """Whole frames after `since`, from at most one segment; `most`: so many.

        One frame is read even where it is larger than `limit_bytes`.
        """
        owned = has_owner(journal)  # before the listing: what is unowned now will not grow
        files = [path for path in segments(journal.home) if number_of(path) >= since.segment]
        for place, path in enumerate(files):
            number = number_of(path)
            offset = since.offset if number == since.segment else 0
            data = _read(path, offset, limit_bytes)
            full = len(data) == limit_bytes
            sealed = place + 1 < len(files) or not owned
            frames = tuple(islice(decode(data, offset, sealed=sealed), most))
            if not frames and full:
                data = _read(path, offset, FRAME_LIMIT_BYTES)
                frames = tuple(islice(decode(data, offset, sealed=sealed), 1))
            last = place + 1 == len(files)
            if frames or last:
                after = JournalOffset(number, frames[-1].end if frames else offset)
                return JournalChunk(frames, after, not last or full or len(frames) == most)
            # Nothing whole is left here and a later segment exists: the rest is a torn tail.
        return JournalChunk((), since)

    def backlog_bytes(self, journal: JournalSource, since: JournalOffset) -> int:
        """Bytes written and not applied."""
        total = 0
        for path in segments(journal.home):
            if number_of(path) >= since.segment:
                total += path.stat().st_size
                total -= since.offset if number_of(path) == since.segment else 0
        return total

    def remove_applied(self, journal: JournalSource, position: JournalOffset) -> int:
        """Delete segments wholly before the position, never the newest; returns how many."""
        old = [path for path in segments(journal.home)[:-1] if number_of(path) < position.segment]
        for path in old:
            path.unlink()
        return len(old)

    def remove(self, journal: JournalSource) -> None:
        """Forget a journal that is applied to its end and has no owner."""
        shutil.rmtree(journal.home)


def has_owner(journal: JournalSource) -> bool:
    """Whether a live process holds the journal; the lock falls when that process dies."""
    return is_locked(journal.home / OWNER_FILE)


def _read(path: Path, offset: int, limit_bytes: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(limit_bytes)
