"""Repair of frames with exactly one wrong bit, by their checksums; used only by salvage.

CRC-32 is linear: the difference between stored and computed checksum identifies a single wrong bit,
for payloads up to `REPAIRABLE_BYTES`, within which no two bits give the same difference. Several
wrong bits look like one in about one of 2^32 / bits cases, so a person decides whether to apply the
result. No I/O.
"""

import zlib
from collections.abc import Iterator

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
from ledger.journals.payloads import RECORD_LIMIT_BYTES, decode_payload

REPAIRABLE_BYTES = 64 * 1024
_POLYNOMIAL = 0xEDB88320


def _make_table() -> tuple[int, ...]:
    table = []
    for number in range(256):
        value = number
        for _ in range(8):
            value = (value >> 1) ^ (_POLYNOMIAL if value & 1 else 0)
        table.append(value)
    return tuple(table)


_TABLE = _make_table()


def repair_payload(payload: bytes, crc: int) -> bytes | None:
    """Return the payload with the one bit flipped that gives checksum `crc`, or `None`."""
    difference = zlib.crc32(payload) ^ crc
    if difference == 0:
        return payload
    if len(payload) > REPAIRABLE_BYTES:
        return None
    made = [_TABLE[1 << bit] for bit in range(8)]  # by a bit of the last byte
    for place in range(len(payload) - 1, -1, -1):
        if difference in made:
            changed = bytearray(payload)
            changed[place] ^= 1 << made.index(difference)
            return bytes(changed)
        made = [(value >> 8) ^ _TABLE[value & 0xFF] for value in made]
    return payload if difference.bit_count() == 1 else None  # the stored checksum itself


def repair_frames(data: bytes, base: int, stamp: int) -> Iterator[Frame]:
    """Yield records of frames in damaged bytes that one flipped bit makes whole.

    `data` is at offset `base` of its segment and begins where a frame should begin.
    """
    place = 0
    while place + HEAD_BYTES <= len(data):
        head = parse_head(data, place, stamp) or _repaired_head(data, place, stamp)
        found = None if head is None else _repaired_frame(data, base, place, head)
        if found is not None:
            yield found
            place += found.end - found.start
            continue
        place = _next_candidate(data, place + 1)


def _next_candidate(data: bytes, place: int) -> int:
    found = data.find(SYNC, place)
    return len(data) if found < 0 else found


def _repaired_head(data: bytes, place: int, stamp: int) -> FrameHead | None:
    head = bytearray(data[place : place + HEAD_BYTES])
    for bit in range(8 * HEAD_BYTES):
        head[bit // 8] ^= 1 << bit % 8
        found = parse_head(bytes(head), 0, stamp)
        if found is not None:
            return found
        head[bit // 8] ^= 1 << bit % 8
    return None


def _repaired_frame(data: bytes, base: int, place: int, head: FrameHead) -> Frame | None:
    body = place + HEAD_BYTES
    payload = data[body : body + head.length]
    if len(payload) < head.length or head.length > RECORD_LIMIT_BYTES:
        return None
    whole = whole_payload(data, place, head) or repair_payload(payload, head.payload_crc)
    if whole is None or head.kind != FrameKind.RECORD:
        return None
    try:
        record = decode_payload(whole)
    except msgspec.MsgspecError:
        return None
    start, end = base + place, base + body + head.length
    return Frame(start, end, whole, record, None, head.sequence)
