"""A scanner of a segment of format 2: every intact frame, and the damage. No I/O.

A damaged frame loses only itself: reading continues at the next sync word with an intact head and
payload of this segment. Sequence numbers show what is missing. A repeated number is skipped; a
missing number that appears later, at another place, is accepted.
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
    """Bytes from `start` to `end` of a segment that are no frame, or missing numbers.

    `after` is the last sequence number before them. `missing` counts numbers without a frame,
    `None` if unknown. `raw` are the first bytes.
    """

    start: int
    end: int
    after: int
    missing: int | None
    reason: str
    raw: bytes = b""


@dataclass(slots=True)
class SegmentScan:
    """Result of a scan. `end` is the end of the last frame, `sequence` the next number.

    `sequence` is 0 before the first frame of an unknown journal.
    """

    end: int
    sequence: int
    frames: list[Frame] = field(default_factory=list)
    damages: list[Damage] = field(default_factory=list)
    is_ended: bool = False


class SegmentScanner:
    """One pass over `data`, which begins at offset `base` of its segment.

    Bytes before offset `since` were read before: they are searched only for missing frames and are
    no damage.
    """

    def __init__(self, data: bytes, base: int, stamp: int, *, since: int | None = None) -> None:
        self._data, self._base, self._stamp = data, base, stamp
        self._since = base if since is None else since
        self._missing: dict[int, Damage] = {}

    def scan(
        self, sequence: int, *, most: int | None = None, until: int | None = None
    ) -> SegmentScan:
        """Read frames from number `sequence` on, up to the last whole one.

        `most` limits the records; `until` limits frames to those that begin before this offset, at
        least one. Frames behind either limit are searched for missing numbers, and otherwise left
        for the next pass.
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
        """Return the bytes after the last frame, without trailing zeros."""
        return self._data[max(0, found.end - self._base) :].rstrip(b"\0")

    def _frame_at(self, place: int) -> tuple[FrameHead, bytes] | None:
        head = parse_head(self._data, place, self._stamp)
        payload = whole_payload(self._data, place, head) if head is not None else None
        return None if head is None or payload is None else (head, payload)

    def _next_whole(self, place: int) -> int:
        """Return where the next intact frame begins, -1 if there is none."""
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
        """Accept frames after `place` whose numbers are missing before it."""
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
        """Return new bytes between two frames that are not padding."""
        start = max(behind, self._since - self._base)
        between = self._data[start:place] if start < place else b""
        return between if between.strip(b"\0") else b""

    def _note(
        self, found: SegmentScan, behind: int, place: int, after: int, missing: int, bad: bytes
    ) -> Damage:
        reason = "bytes that are not an intact frame" if bad else "no frame has these numbers"
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
