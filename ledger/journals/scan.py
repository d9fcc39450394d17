"""Reading a segment of format 2 from its bytes: every intact frame, and what is damaged. Pure.

A frame that is not intact costs itself alone: reading goes on at the next sync word with an intact
head and payload of this segment. Sequence numbers tell what is missing. A number that comes again
is passed over; a missing number that comes later, at another place, is taken.
"""

from dataclasses import dataclass, field

import msgspec

from ledger.journals.frames import Frame
from ledger.journals.layout import (
    HEAD_BYTES,
    SYNC,
    FrameHead,
    FrameKind,
    parse_head,
    whole_payload,
)
from ledger.journals.payloads import NewerRecordError, decode_payload

SAMPLE_BYTES = 64 * 1024  # of what is damaged, that are kept
TRACKED_NUMBERS = 100_000  # of one gap, that are taken when they come later


@dataclass(slots=True)
class Damage:
    """Bytes from `start` up to `end` of a segment that are no frame, or missing numbers.

    `after` is the last sequence number before them. `missing` counts the numbers that no frame
    has; None: not known. `raw` are the first bytes.
    """

    start: int
    end: int
    after: int
    missing: int | None
    reason: str
    raw: bytes = b""


@dataclass(slots=True)
class SegmentScan:
    """The result of a scan. `end` is behind the last frame, `sequence` the next number.

    `sequence` is 0 before the first frame of a journal of which nothing is known.
    """

    end: int
    sequence: int
    frames: list[Frame] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)
    is_ended: bool = False


class SegmentScanner:
    """One pass over `data`, which begins at offset `base` of its segment.

    Bytes before offset `since` were read before: they are looked at for frames that are missing
    by now, and are no damage.
    """

    def __init__(self, data: bytes, base: int, stamp: int, *, since: int | None = None) -> None:
        self._data, self._base, self._stamp = data, base, stamp
        self._since = base if since is None else since
        self._missing: dict[int, Damage] = {}

    def scan(
        self, sequence: int, *, most: int | None = None, until: int | None = None
    ) -> SegmentScan:
        """Read from number `sequence` on. Stops where nothing is whole.

        `most`: so many records. `until`: frames that begin before this offset, one at least. What
        lies behind either is looked at for numbers that are missing before it, and left for the
        next pass otherwise.
        """
        found = SegmentScan(self._since, sequence)
        place, behind = 0, 0
        while most is None or len(found.frames) < most:
            here = self._frame_at(place)
            if here is None:
                place = self._next_whole(place)
                here = self._frame_at(place) if place >= 0 else None
            is_beyond = until is not None and self._base + place >= until
            if here is None or (is_beyond and found.end > self._since):
                break
            self._accept(found, behind, place, *here)
            place = behind = place + HEAD_BYTES + here[0].length
            found.end = max(found.end, self._base + place)
        self._take_late(found, max(place, 0))
        return found

    def rest(self, found: SegmentScan) -> bytes:
        """Return what lies behind the last frame, without the zeros at its end."""
        return self._data[max(0, found.end - self._base) :].rstrip(b"\0")

    def _frame_at(self, place: int) -> tuple[FrameHead, bytes] | None:
        head = parse_head(self._data, place, self._stamp)
        payload = whole_payload(self._data, place, head) if head is not None else None
        return None if head is None or payload is None else (head, payload)

    def _next_whole(self, place: int) -> int:
        """Return where the next intact frame begins, -1 where none does."""
        while (place := self._data.find(SYNC, place)) >= 0:
            if self._frame_at(place) is not None:
                return place
            place += 1
        return place

    def _accept(
        self, found: SegmentScan, behind: int, place: int, head: FrameHead, payload: bytes
    ) -> None:
        expected = found.sequence or head.sequence
        number = head.sequence
        bad = self._bad_bytes(behind, place)
        if number > expected:
            gap = self._note(found, behind, place, expected - 1, number - expected, bad)
            for lacking in range(expected, min(number, expected + TRACKED_NUMBERS)):
                self._missing[lacking] = gap
        elif bad:
            self._note(found, behind, place, expected - 1, 0, bad)
        if number < expected and number not in self._missing:
            return
        found.sequence = max(expected, number + 1)
        self._take(found, place, head, payload)

    def _take_late(self, found: SegmentScan, place: int) -> None:
        """Take frames from `place` on whose numbers are missing before it."""
        while self._missing and (place := self._next_whole(place)) >= 0:
            here = self._frame_at(place)
            assert here is not None, "whole"
            if here[0].sequence in self._missing:
                self._take(found, place, *here)
            place += HEAD_BYTES + here[0].length

    def _take(self, found: SegmentScan, place: int, head: FrameHead, payload: bytes) -> None:
        late = self._missing.pop(head.sequence, None)
        if late is not None and late.missing:
            late.missing -= 1
        if head.kind == FrameKind.END:
            found.is_ended = True
            return
        start, end = self._base + place, self._base + place + HEAD_BYTES + head.length
        found.frames.append(_frame_of(payload, start, end, head.sequence))

    def _bad_bytes(self, behind: int, place: int) -> bytes:
        """Return what lies between two frames and is no padding, as far as it is new."""
        start = max(behind, self._since - self._base)
        between = self._data[start:place] if start < place else b""
        return between if between.strip(b"\0") else b""

    def _note(
        self, found: SegmentScan, behind: int, place: int, after: int, missing: int, bad: bytes
    ) -> Damage:
        reason = "bytes that are no intact frame" if bad else "no frame has these numbers"
        start = max(self._base + behind, min(self._since, self._base + place))
        noted = Damage(start, self._base + place, after, missing, reason, bad[:SAMPLE_BYTES])
        found.damages.append(noted)
        return noted


def _frame_of(payload: bytes, start: int, end: int, sequence: int) -> Frame:
    try:
        return Frame(start, end, payload, decode_payload(payload), None, sequence)
    except msgspec.MsgspecError as error:
        raw, newer = payload[:SAMPLE_BYTES], isinstance(error, NewerRecordError)
        return Frame(start, end, raw, None, f"not a record: {error}", sequence, newer)
