"""A reader of one segment file of format 2: intact frames after a position, and damage.

Reading continues after damage, also while the worker lives: frames are written in order, so all
bytes before an intact frame were complete when it was written. A live segment is read twice before
damage is reported, because a read during a write may see half of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ledger.journals.homes import number_of
from ledger.journals.layout import (
    HEAD_BYTES,
    HEADER_BYTES,
    parse_header,
    stamp_of,
)
from ledger.journals.payloads import RECORD_LIMIT_BYTES
from ledger.journals.pending import PendingGroup
from ledger.journals.scan import SAMPLE_BYTES, Damage, SegmentScan, SegmentScanner
from ledger.journals.segment_bytes import SegmentBytes

BACK_BYTES = 1024 * 1024  # before a damaged place, that are looked through for shifted frames
AHEAD_BYTES = 1024 * 1024  # the same behind what is read at once
BEYOND_BYTES = HEAD_BYTES + RECORD_LIMIT_BYTES  # the longest frame
RESYNC_BYTES = 8 * 1024 * 1024  # behind damage, in which the next intact frame is looked for


@dataclass(frozen=True, slots=True)
class SegmentReading:
    """A request to read a segment: frames from `offset` on, the next with number `sequence`.

    `following` is the next segment's file. `is_live`: the worker may append. `written`: the last
    number that the worker had certainly written at this time. `sure`: the last number that must be
    in a dead worker's journal. `pending`: groups that are only in memory. `has_gaps`: they count
    after a gap too.
    """

    path: Path
    journal: str
    segment: int
    offset: int
    sequence: int
    limit_bytes: int
    most: int | None
    following: Path | None = None
    is_live: bool = False
    written: int | None = None
    sure: int | None = None
    pending: Sequence[PendingGroup] = ()
    has_gaps: bool = False

    def bytes_of(self, path: Path) -> SegmentBytes:
        """Return the bytes of this segment, or of the following one. Raises `OSError`."""
        groups = [group for group in self.pending if group.segment == number_of(path)]
        return SegmentBytes(path, self.journal, groups, has_gaps=self.has_gaps)


@dataclass(slots=True)
class SegmentResult(SegmentScan):
    """Result of a read. `more`: the segment continues after what was read."""

    more: bool = False


def read_segment(asked: SegmentReading) -> SegmentResult:
    """Read a segment, a live one twice before damage is reported. Raises `OSError`."""
    found = _read_once(asked)
    if found.damages and asked.is_live:
        found = _read_once(asked)
    return found


def _read_once(asked: SegmentReading) -> SegmentResult:
    content = asked.bytes_of(asked.path)
    size = content.size
    offset, sequence = asked.offset, asked.sequence
    damages: list[Damage] = []
    if size < offset and _has_all_that_is_sure(asked, content):
        return SegmentResult(offset, sequence)
    if size < offset:
        reason = "the segment is shorter than what was read of it"
        damages.append(Damage(size, offset, sequence - 1, 0, reason))
        offset = 0
    if offset < HEADER_BYTES:
        header = parse_header(content.read(0, HEADER_BYTES))
        first = 1 if asked.segment == 1 else 0
        sequence = sequence or (first if header is None else header.first)
        offset = 0 if header is None else HEADER_BYTES  # a damaged one is bytes that are no frame
    found = _scan_from(asked, content, offset, sequence)
    found.damages[:0] = damages
    return found


def _has_all_that_is_sure(asked: SegmentReading, content: SegmentBytes) -> bool:
    """Return whether all that is missing was never flushed, and so lost in a power cut.

    The ledger may have read it from the kernel's memory before.
    """
    if asked.sure is None or asked.is_live or asked.following is not None:
        return False
    data = content.read(HEADER_BYTES, content.size)
    scanner = SegmentScanner(data, HEADER_BYTES, stamp_of(asked.journal, asked.segment))
    return scanner.scan(0).sequence > asked.sure


def _scan_from(
    asked: SegmentReading, content: SegmentBytes, offset: int, sequence: int
) -> SegmentResult:
    size = content.size
    stamp = stamp_of(asked.journal, asked.segment)
    data = content.read(offset, asked.limit_bytes)
    scanner = SegmentScanner(data, offset, stamp)
    scan = scanner.scan(sequence, most=asked.most)
    for limit in (BEYOND_BYTES, RESYNC_BYTES, size):  # a long frame, or much damage
        if scan.frames or scan.end > offset or offset + len(data) >= size:
            break
        data = content.read(offset, max(limit, asked.limit_bytes))
        scanner = SegmentScanner(data, offset, stamp)
        scan = scanner.scan(sequence, most=asked.most)
    end = offset + len(data)
    is_read = end >= size
    if scan.damages:
        base = max(HEADER_BYTES, offset - BACK_BYTES) if offset > HEADER_BYTES else offset
        data = content.read(base, end - base + (0 if is_read else AHEAD_BYTES))
        scanner = SegmentScanner(data, base, stamp, since=offset)
        scan = scanner.scan(sequence, most=asked.most, until=None if is_read else end)
    stopped = asked.most is not None and len(scan.frames) >= asked.most
    result = SegmentResult(
        scan.end, scan.sequence, scan.frames, scan.damages, scan.is_ended,
        more=stopped or (not is_read and scan.end != asked.offset),
    )  # fmt: skip
    if is_read and not stopped:
        _judge_rest(asked, result, scanner.rest(scan))
    return result


def _judge_rest(asked: SegmentReading, result: SegmentResult, rest: bytes) -> None:
    """Classify the bytes after the last intact frame, where that is certain."""
    after = result.sequence - 1
    if asked.following is not None:
        header = parse_header(asked.bytes_of(asked.following).read(0, HEADER_BYTES))
        missing = 0 if header is None else max(0, header.first - result.sequence)
        if rest or missing:
            _add_rest(result, rest, missing)
            result.end += len(rest)
            result.sequence += missing
    elif asked.is_live and asked.written is not None and asked.written > max(0, after):
        # The worker had written these numbers before the bytes were read.
        _add_rest(result, rest, asked.written - max(0, after))


def _add_rest(result: SegmentResult, rest: bytes, missing: int) -> None:
    start, after = result.end, max(0, result.sequence - 1)
    reason = "bytes that are not an intact frame" if rest else "no frame has these numbers"
    noted = Damage(start, start + len(rest), after, missing, reason, rest[:SAMPLE_BYTES])
    result.damages.append(noted)
