"""Frames in which one bit is wrong are put right; with more wrong bits nothing is made up."""

import random

import pytest
from journal_damage import encode_frame, short_record

from ledger.journals.layout import HEAD_BYTES
from ledger.journals.payloads import encode_payload
from ledger.journals.repair import REPAIRABLE_BYTES, repair_frames, repair_payload

STAMP = 77
RECORD = short_record(5)
FRAME = encode_frame(encode_payload(RECORD), 12, STAMP)


def turned(data: bytes, *bits: int) -> bytes:
    changed = bytearray(data)
    for bit in bits:
        changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


@pytest.mark.parametrize("bit", range(8 * len(FRAME)))
def test_any_one_bit_of_a_frame(bit) -> None:
    (found,) = repair_frames(turned(FRAME, bit), 100, STAMP)
    assert (found.record, found.sequence) == (RECORD, 12)
    assert (found.start, found.end) == (100, 100 + len(FRAME))


def test_two_bits_of_a_payload_are_not_made_up() -> None:
    dice = random.Random(3)
    bits = range(8 * HEAD_BYTES, 8 * len(FRAME))
    for _ in range(100):
        assert list(repair_frames(turned(FRAME, *dice.sample(bits, 2)), 0, STAMP)) == []


def test_what_lies_behind_a_frame_that_is_gone_is_found() -> None:
    data = bytes(300) + turned(FRAME, 300) + turned(FRAME, 400)
    assert len(list(repair_frames(data, 0, STAMP))) == 2


def test_a_long_payload_is_left_as_it_is() -> None:
    assert repair_payload(bytes(REPAIRABLE_BYTES + 1), 5) is None
