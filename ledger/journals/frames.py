"""Frames of journal format 1 (length, checksum, msgpack), which earlier versions wrote: read only.

A frame that is cut short at the end of a segment was never acknowledged: it is a torn tail and no
loss. A whole frame whose checksum is wrong, or bytes that are no frame at all, were: they come
out as faults, alone, so that what follows is still read.
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
    """One frame, from `start` up to `end` of its segment. Exactly one of record and fault.

    `sequence`: its number in its journal; 0 in format 1, which has none. `is_newer`: a version that
    knows more wrote it whole; it stays where it is.
    """

    start: int
    end: int
    raw: bytes
    record: Record | None
    fault: str | None = None
    sequence: int = 0
    is_newer: bool = False


def decode(data: bytes, base: int, *, sealed: bool) -> Iterator[Frame]:
    """Frames of `data`, which starts at offset `base` of its segment, as far as they are whole.

    `sealed` says that nothing will be added: bytes that are no frame then end the segment. Where an
    intact frame lies behind or within what is none, reading goes on there.
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
