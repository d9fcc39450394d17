"""Frames of journal format 1 (length, checksum, msgpack), which earlier versions wrote: read only.

A frame that is cut short at the end of a segment was never acknowledged: it is a torn tail and no
loss. A whole frame whose checksum is wrong, or bytes that are no frame at all, were: they come
out as faults, alone, so that what follows is still read.
"""

import struct
import zlib
from collections.abc import Iterator

import msgspec

from ledger.journals.payloads import RECORD_LIMIT_BYTES, decode_payload
from ledger.journals.records import Record

FAULT_SAMPLE_BYTES = 4096
_HEAD = struct.Struct("<II")  # payload length, CRC-32 of the payload
FRAME_LIMIT_BYTES = _HEAD.size + RECORD_LIMIT_BYTES


class Frame(msgspec.Struct, frozen=True):
    """One frame, from `start` up to `end` of its segment. Exactly one of record and fault.

    `sequence`: its number in its journal; 0 in format 1, which has none.
    """

    start: int
    end: int
    raw: bytes
    record: Record | None
    fault: str | None = None
    sequence: int = 0


def decode(data: bytes, base: int, *, sealed: bool) -> Iterator[Frame]:
    """Frames of `data`, which starts at offset `base` of its segment, as far as they are whole.

    `sealed` says that nothing will be added: bytes that are no frame then end the segment.
    """
    place = 0
    while place + _HEAD.size <= len(data):
        length, checksum = _HEAD.unpack_from(data, place)
        body = place + _HEAD.size
        if not 0 < length <= RECORD_LIMIT_BYTES:
            if sealed and any(data[place:]):
                yield _fault(data[place:], base + place, base + len(data), "no frame")
            return
        if body + length > len(data):
            return
        raw = data[body : body + length]
        yield _frame(raw, base + place, base + body + length, checksum)
        place = body + length


def _frame(raw: bytes, start: int, end: int, checksum: int) -> Frame:
    if zlib.crc32(raw) != checksum:
        return _fault(raw, start, end, "checksum")
    try:
        return Frame(start, end, raw, decode_payload(raw))
    except msgspec.MsgspecError as error:
        return _fault(raw, start, end, f"not a record: {error}")


def _fault(raw: bytes, start: int, end: int, fault: str) -> Frame:
    return Frame(start, end, raw[:FAULT_SAMPLE_BYTES], None, fault)
