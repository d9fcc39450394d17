"""Frames of journal format 1 (length, checksum, msgpack), written by earlier versions.

A frame that is cut off at the end of a segment was never acknowledged: it is a torn tail and no
loss. A whole frame with a wrong checksum, or bytes that are no frame, are faults; reading continues
behind them. This module only reads.
"""

import struct
import zlib
from collections.abc import Iterator

import msgspec

from ledger.journals.payloads import RECORD_LIMIT_BYTES, NewerRecordError, decode_payload
from ledger.journals.records import Record

FAULT_SAMPLE_BYTES = 4096
_HEAD = struct.Struct("<II")  # payload length, CRC-32 of the payload
FRAME_LIMIT_BYTES = _HEAD.size + RECORD_LIMIT_BYTES


class Frame(msgspec.Struct, frozen=True):
    """One frame, from `start` to `end` of its segment, with either a record or a fault.

    `sequence`: its number in the journal, 0 in format 1, which has none. `is_newer`: a newer
    version wrote it; it is left in place.
    """

    start: int
    end: int
    raw: bytes
    record: Record | None
    fault: str | None = None
    sequence: int = 0
    is_newer: bool = False


def decode(data: bytes, base: int, *, sealed: bool) -> Iterator[Frame]:
    """Yield the whole frames of `data`, which starts at offset `base` of its segment.

    `sealed`: nothing will be added, so bytes that are no frame end the segment. If an intact frame
    follows them or lies within, reading continues there.
    """
    place = 0
    while place + _HEAD.size <= len(data):
        length, checksum = _HEAD.unpack_from(data, place)
        end = place + _HEAD.size + length
        is_length = 0 < length <= RECORD_LIMIT_BYTES
        raw = data[place + _HEAD.size : end]
        if is_length and end <= len(data) and zlib.crc32(raw) == checksum:
            yield _frame(raw, base + place, base + end)
        elif is_length and end <= len(data):
            end = _next_intact(data, place + 1, end)
            yield _fault(raw, base + place, base + end, "checksum")
        elif sealed and any(data[place:]):
            end = _next_intact(data, place + 1, len(data))
            if end == len(data) and is_length:
                return  # cut short at the end
            yield _fault(data[place:end], base + place, base + end, "no frame")
        else:
            return
        place = end


def _next_intact(data: bytes, place: int, until: int) -> int:
    """Return where the next intact record begins before `until`, else `until`."""
    for start in range(place, min(until, len(data) - _HEAD.size)):
        length, checksum = _HEAD.unpack_from(data, start)
        body = start + _HEAD.size
        if 0 < length <= min(RECORD_LIMIT_BYTES, len(data) - body):
            raw = data[body : body + length]
            if zlib.crc32(raw) == checksum and _frame(raw, start, body + length).record is not None:
                return start
    return until


def _frame(raw: bytes, start: int, end: int) -> Frame:
    try:
        return Frame(start, end, raw, decode_payload(raw))
    except msgspec.MsgspecError as error:
        newer, fault = isinstance(error, NewerRecordError), f"not a record: {error}"
        return Frame(start, end, raw[:FAULT_SAMPLE_BYTES], None, fault, is_newer=newer)


def _fault(raw: bytes, start: int, end: int, fault: str) -> Frame:
    return Frame(start, end, raw[:FAULT_SAMPLE_BYTES], None, fault)
