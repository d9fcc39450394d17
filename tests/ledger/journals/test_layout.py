"""The layout of format 2: aligned, stamped, checksummed; what is damaged is not taken for whole."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from journal_damage import encode_frame

from ledger.journals.layout import (
    HEAD_BYTES,
    HEADER_BYTES,
    NAME_LIMIT_BYTES,
    SYNC,
    FrameHead,
    FrameKind,
    SegmentHeader,
    encode_header,
    parse_head,
    parse_header,
    stamp_of,
    whole_payload,
)

HEADER = SegmentHeader("worker-0-0123456789abcdef", 7, 3, 12_345)
STAMP = stamp_of(HEADER.journal, HEADER.segment)


def test_a_header_is_one_block_and_comes_back() -> None:
    block = encode_header(HEADER)
    assert len(block) == HEADER_BYTES
    assert parse_header(block) == HEADER
    assert parse_header(block[:-1]) is None


@given(st.integers(0, 8 * HEADER_BYTES - 1))
def test_a_header_with_a_wrong_bit_is_none(bit) -> None:
    block = bytearray(encode_header(HEADER))
    block[bit // 8] ^= 1 << bit % 8
    assert parse_header(bytes(block)) is None


def test_a_name_without_bound_is_refused() -> None:
    with pytest.raises(ValueError, match="name"):
        encode_header(HEADER._replace(journal="n" * (NAME_LIMIT_BYTES + 1)))


@given(st.binary(max_size=300), st.integers(0, 2**64 - 1))
def test_a_frame_comes_back(payload, sequence) -> None:
    frame = encode_frame(payload, sequence, STAMP)
    assert len(frame) == HEAD_BYTES + len(payload)
    assert frame.startswith(SYNC)
    head = parse_head(frame, 0, STAMP)
    assert head == FrameHead(len(payload), sequence, FrameKind.RECORD, head.payload_crc)
    assert whole_payload(frame, 0, head) == payload


@given(st.binary(min_size=1, max_size=60), st.data())
def test_a_frame_with_a_wrong_bit_is_none(payload, data) -> None:
    frame = bytearray(encode_frame(payload, 9, STAMP))
    bit = data.draw(st.integers(0, 8 * len(frame) - 1))
    frame[bit // 8] ^= 1 << bit % 8
    head = parse_head(bytes(frame), 0, STAMP)
    assert head is None or whole_payload(bytes(frame), 0, head) is None


def test_a_frame_of_another_segment_is_none() -> None:
    """A file that is used again still holds frames of its earlier use."""
    frame = encode_frame(b"payload", 9, STAMP)
    assert parse_head(frame, 0, stamp_of(HEADER.journal, 8)) is None
    assert parse_head(frame, 0, stamp_of("worker-0-another", 7)) is None
