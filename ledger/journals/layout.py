"""Byte layout of journal format 2: a segment's header block, then frames. No I/O.

A segment begins with a block of `HEADER_BYTES`. Zeros between two frames are padding, so that a
group of frames may end at a block's end and files can be allocated ahead. Each frame has the stamp
of its segment; frames of another stamp are remains of the file's previous use.

Header block: magic, version, stamp, segment, generation (uses of the file), first sequence number,
journal name, zeros, CRC-32 of all before. Frame: sync word, length, sequence number, stamp, kind,
CRC-32 of the payload, CRC-32 of the head so far, payload (msgpack).
"""

import struct
import zlib
from enum import IntEnum
from hashlib import blake2b
from typing import NamedTuple

from ledger.journals.payloads import RECORD_LIMIT_BYTES, RecordTooLargeError

HEADER_BYTES = 4096  # the largest block that disks ask of direct I/O
SYNC = b"\xc1BJ2"  # msgpack never uses the byte 0xc1
VERSION = 2
_MAGIC = b"BRKVNJNL"
_HEADER = struct.Struct("<8sHxxIQIQH")  # magic ... length of the name
_HEAD = struct.Struct("<4sIQIII")  # sync word, length, sequence, stamp, kind, CRC of the payload
_CHECK = struct.Struct("<I")
_CHECKED = struct.Struct(f"<{_HEAD.size}sI")  # a head with its CRC-32 in one step
HEAD_BYTES = _CHECKED.size
NAME_LIMIT_BYTES = 1024


class FrameKind(IntEnum):
    """The content of a frame. `END` has no payload: the journal was closed and is complete."""

    RECORD = 1
    END = 2


_KINDS = frozenset(FrameKind)


class SegmentHeader(NamedTuple):
    """A segment's header. `generation` counts uses of the file, `first` is its first number."""

    journal: str
    segment: int
    generation: int
    first: int


class FrameHead(NamedTuple):
    length: int  # bytes of the payload
    sequence: int
    kind: int
    payload_crc: int


def stamp_of(journal: str, segment: int) -> int:
    """Return the 32 bits that each frame of a segment carries, a hash of journal and number."""
    digest = blake2b(f"{journal}/{segment}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little")


def encode_header(header: SegmentHeader) -> bytes:
    name = header.journal.encode()
    if len(name) > NAME_LIMIT_BYTES:
        raise ValueError(f"a journal's name of {len(name)} bytes")
    stamp = stamp_of(header.journal, header.segment)
    head = _HEADER.pack(
        _MAGIC, VERSION, stamp, header.segment, header.generation, header.first, len(name)
    )
    block = (head + name).ljust(HEADER_BYTES - _CHECK.size, b"\0")
    return block + _CHECK.pack(zlib.crc32(block))


def parse_header(block: bytes) -> SegmentHeader | None:
    """Return the header of a block, `None` if it is damaged or of another version."""
    if len(block) < HEADER_BYTES:
        return None
    end = HEADER_BYTES - _CHECK.size
    if zlib.crc32(block[:end]) != _CHECK.unpack_from(block, end)[0]:
        return None
    magic, version, stamp, segment, generation, first, length = _HEADER.unpack_from(block)
    if magic != _MAGIC or version != VERSION or length > NAME_LIMIT_BYTES:
        return None
    name = block[_HEADER.size : _HEADER.size + length].decode(errors="replace")
    if stamp != stamp_of(name, segment):
        return None
    return SegmentHeader(name, segment, generation, first)


def encode_head(payload: bytes, sequence: int, stamp: int, kind: int = FrameKind.RECORD) -> bytes:
    """Return the head of a frame. Raises `RecordTooLargeError` for a payload above the limit."""
    if len(payload) > RECORD_LIMIT_BYTES:
        raise RecordTooLargeError(f"a record of {len(payload)} bytes")
    head = _HEAD.pack(SYNC, len(payload), sequence, stamp, kind, zlib.crc32(payload))
    return _CHECKED.pack(head, zlib.crc32(head))


def parse_head(data: bytes, place: int, stamp: int | None) -> FrameHead | None:
    """Return the intact frame head at `place`, or `None`.

    `stamp` is the segment's; `None` accepts any segment's.
    """
    check = place + _HEAD.size
    if check + _CHECK.size > len(data) or data[place : place + len(SYNC)] != SYNC:
        return None
    if zlib.crc32(data[place:check]) != _CHECK.unpack_from(data, check)[0]:
        return None
    _, length, sequence, stamped, kind, payload_crc = _HEAD.unpack_from(data, place)
    if stamp not in (None, stamped) or kind not in _KINDS or length > RECORD_LIMIT_BYTES:
        return None
    return FrameHead(length, sequence, kind, payload_crc)


def whole_payload(data: bytes, place: int, head: FrameHead) -> bytes | None:
    """Return the payload after the head at `place`, `None` if it is cut off or damaged."""
    body = place + HEAD_BYTES
    payload = data[body : body + head.length]
    if len(payload) < head.length or zlib.crc32(payload) != head.payload_crc:
        return None
    return payload
