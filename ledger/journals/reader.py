"""A reader of all workers' journals from a position, which also deletes applied segments.

A journal without an owner will not grow: its last segment counts as sealed. Once all of it is
applied and its open attempts are settled, its directory is deleted. `_read_old` reads format 1,
written by earlier versions; `ledger.journals.segment_reader` reads format 2.
"""

import os
import shutil
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from ledger.journals.frames import FRAME_LIMIT_BYTES, Frame, decode
from ledger.journals.homes import (
    JournalSource,
    has_owner,
    keep_copy,
    list_journals,
    number_of,
    segment_path,
    segments,
)
from ledger.journals.layout import HEADER_BYTES, parse_header
from ledger.journals.mark import read_boot_id, read_mark, read_mount_id
from ledger.journals.pending import PENDING_FILE, PendingGroup, read_groups
from ledger.journals.scan import Damage
from ledger.journals.segment_reader import SegmentReading, read_segment
from ledger.locks import is_locked
from ledger.presence import is_there

READ_BYTES = 4 * 1024 * 1024  # at most this much of a journal is in memory at once
_NO_MARK = "neither an end frame nor a readable mark"
_REMOUNTED = "its file system was mounted anew, and no end frame tells that all is there"


@dataclass(frozen=True, slots=True, order=True)
class JournalOffset:
    """A position in a journal: everything before `offset` of `segment` is applied.

    `sequence` is the number of the next frame, 0 in format 1 and if no frame was read.
    """

    segment: int = 0
    offset: int = 0
    sequence: int = 0


@dataclass(frozen=True, slots=True)
class JournalChunk:
    """The readable frames of one segment from a position on; `after` is the next position.

    `after` may be beyond the last frame. `more`: the limit was reached, or a later segment exists.
    `damages` are in segment number `damaged`.
    """

    frames: tuple[Frame, ...]
    after: JournalOffset
    more: bool = False
    damages: tuple[Damage, ...] = ()
    damaged: int = 0


class JournalReader:
    """A reader of all journals in one directory. It tests owners' locks without keeping them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: frozenset[str] = frozenset()  # journals that were here at the last look

    def journals(self) -> list[JournalSource]:
        found = list_journals(self._directory, self._known)
        self._known = frozenset(journal.name for journal in found)
        return found

    def read(
        self,
        journal: JournalSource,
        since: JournalOffset,
        *,
        limit_bytes: int = READ_BYTES,
        most: int | None = None,
    ) -> JournalChunk:
        """Read up to `most` whole frames after `since`, from a single segment.

        One frame is read even if it is larger than `limit_bytes`. Raises `OSError`.
        """
        if journal.format == 1:
            return _read_old(journal, since, limit_bytes, most)
        owned = has_owner(journal)  # before the listing: a journal without an owner will not grow
        # The mark is read before the frames: those that it counts are whole when they are read.
        mark, boot = read_mark(journal.lock), read_boot_id()
        written, sure = (mark.written, None) if owned else (None, mark.sure(boot))
        # Pending frames are read first: those written since then are found in the segments.
        same_boot = bool(boot) and mark.boot == boot
        is_dead = same_boot and not owned
        pending = read_groups(journal.home / PENDING_FILE, is_dead=is_dead, written=mark.written)
        known = _without_strangers(journal) if owned else segments(journal)
        files = _with_pending(journal, known, pending if owned or same_boot else [])
        files = [path for path in files if number_of(path) >= since.segment]
        for place, path in enumerate(files):
            number, last = number_of(path), place + 1 == len(files)
            # A journal begins at number 1, whichever of its segments exists first.
            begun = JournalOffset(number, 0, since.sequence or 1)
            here = since if number == since.segment else begun
            reading = SegmentReading(
                path, journal.name, number, here.offset, here.sequence, limit_bytes, most,
                following=None if last else files[place + 1], is_live=owned and last,
                written=written, sure=sure, pending=pending, has_gaps=is_dead,
            )  # fmt: skip
            found = read_segment(reading)
            after = JournalOffset(number, found.end, found.sequence)
            if found.damages:
                keep_copy(self._directory, journal, path)
            if found.frames or found.damages or found.more or found.is_ended or last:
                more = found.more or not last
                damages = tuple(found.damages)
                return JournalChunk(tuple(found.frames), after, more, damages, number)
            # Nothing whole is left here and a later segment exists: the rest is a torn tail.
        return JournalChunk((), since)

    def lost_tail(self, journal: JournalSource, since: JournalOffset) -> Damage | None:
        """Return what is missing after `since` from a journal without an owner, read to the end.

        `None` if nothing is missing: it was closed, or its process was killed after the last frame.
        """
        if journal.format == 1 or not is_there(journal.home):
            return None
        files = segments(journal)
        after = max(0, since.sequence - 1)
        mark, boot = read_mark(journal.lock), read_boot_id()
        sure = mark.sure(boot)
        is_remounted = mark.is_remounted(boot, _mount_id(journal.home))
        place = since.offset
        if sure is None or is_remounted:
            if files and _is_closed(files[-1], journal, number_of(files[-1])):
                return None
            return Damage(place, place, after, None, _REMOUNTED if is_remounted else _NO_MARK)
        if sure <= after:
            return None
        is_last = bool(files) and number_of(files[-1]) == since.segment
        rest = _read(files[-1], place, FRAME_LIMIT_BYTES).rstrip(b"\0") if is_last else b""
        if files and rest:
            keep_copy(self._directory, journal, files[-1])
        reason = "it was written further than what is there"
        return Damage(place, place + len(rest), after, sure - after, reason, rest)

    def backlog_bytes(self, journal: JournalSource, since: JournalOffset) -> int:
        """Return the bytes that are written and not applied."""
        total = 0
        for path in _without_strangers(journal):
            if number_of(path) >= since.segment:
                total += path.stat().st_size
                total -= since.offset if number_of(path) == since.segment else 0
        return max(0, total)

    def remove_applied(self, journal: JournalSource, position: JournalOffset) -> int:
        """Delete segments before the position, never the newest. Return the number deleted."""
        old = [path for path in segments(journal)[:-1] if number_of(path) < position.segment]
        for path in old:
            path.unlink()
        return len(old)

    def remove(self, journal: JournalSource) -> None:
        """Delete a fully applied journal without an owner; of a symbolic link only the link."""
        if journal.home.is_symlink():
            journal.home.unlink()
        else:
            shutil.rmtree(journal.home)


def _read_old(
    journal: JournalSource, since: JournalOffset, limit_bytes: int, most: int | None
) -> JournalChunk:
    owned = has_owner(journal)
    files = [path for path in segments(journal) if number_of(path) >= since.segment]
    expected, lacking = max(1, since.segment), 0  # fully read segments are deleted up to there
    for place, path in enumerate(files):
        number = number_of(path)
        lacking, expected = lacking + number - expected, number + 1
        offset = since.offset if number == since.segment else 0
        data = _read(path, offset, limit_bytes)
        full = len(data) == limit_bytes
        sealed = place + 1 < len(files) or not owned
        frames = tuple(islice(decode(data, offset, sealed=sealed and not full), most))
        if not frames and full:
            data = _read(path, offset, FRAME_LIMIT_BYTES)
            frames = tuple(islice(decode(data, offset, sealed=sealed), 1))
        last = place + 1 == len(files)
        if frames or last:
            after = JournalOffset(number, frames[-1].end if frames else offset)
            more = not last or full or len(frames) == most
            return JournalChunk(frames, after, more, _missing_segments(lacking), number)
        # Nothing whole is left here and a later segment exists: the rest is a torn tail.
    return JournalChunk((), since)


def _missing_segments(count: int) -> tuple[Damage, ...]:
    """Return the damage of deleted segments of format 1, whose frames have no numbers."""
    return (Damage(0, 0, 0, None, f"{count} segments before it are gone"),) if count else ()


def _without_strangers(journal: JournalSource) -> list[Path]:
    """Return a journal's segments up to the one that its worker writes and holds locked.

    A later file, such as a copy of a segment, would make that segment look finished.
    """
    files = segments(journal)
    for place, path in enumerate(files[1:], 1):
        if journal.format != 1 and not _is_own(journal, path) and is_locked(files[place - 1]):
            return files[:place]
    return files


def _is_own(journal: JournalSource, path: Path) -> bool:
    try:
        header = parse_header(_read(path, 0, HEADER_BYTES))
    except FileNotFoundError:  # applied and deleted since the listing
        return True
    named = (journal.name, number_of(path))
    return header is not None and (header.journal, header.segment) == named


def _with_pending(
    journal: JournalSource, files: list[Path], pending: list[PendingGroup]
) -> list[Path]:
    """Return a journal's segments, followed by those that are only in its worker's memory.

    After another boot there are none, because earlier frames may be missing.
    """
    last = number_of(files[-1]) if files else 0
    numbers = {group.segment for group in pending if group.segment > last}
    return [*files, *(segment_path(journal.home, number) for number in sorted(numbers))]


def _mount_id(home: Path) -> str:
    file = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    try:
        return read_mount_id(file)
    finally:
        os.close(file)


def _is_closed(path: Path, journal: JournalSource, number: int) -> bool:
    whole = SegmentReading(path, journal.name, number, 0, 0, path.stat().st_size, None)
    return read_segment(whole).is_ended


def _read(path: Path, offset: int, limit_bytes: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(limit_bytes)
