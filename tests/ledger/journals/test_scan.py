"""Reading bytes of a segment: every intact frame once, gaps by their numbers, padding ignored."""

from journal_damage import encode_frame, short_record

from ledger.journals.layout import FrameKind
from ledger.journals.payloads import encode_payload
from ledger.journals.scan import SegmentScanner

STAMP = 77


def frame(number: int) -> bytes:
    return encode_frame(encode_payload(short_record(number)), number, STAMP)


def scan(data: bytes, sequence: int = 1, **more):
    scanner = SegmentScanner(data, 1000, STAMP)
    return scanner, scanner.scan(sequence, **more)


def numbers(found) -> list[int]:
    return [each.sequence for each in found.frames]


def test_all_is_read_and_the_position_is_behind_it() -> None:
    data = b"".join(map(frame, (1, 2, 3)))
    scanner, found = scan(data)
    assert numbers(found) == [1, 2, 3]
    assert (found.end, found.sequence, found.damages) == (1000 + len(data), 4, [])
    assert scanner.rest(found) == b""


def test_no_more_than_asked_for_is_read() -> None:
    _, found = scan(b"".join(map(frame, (1, 2, 3))), most=2)
    assert numbers(found) == [1, 2]
    assert found.end == 1000 + len(frame(1) + frame(2))


def test_a_frame_that_was_moved_is_taken_from_behind_the_end_of_the_pass() -> None:
    """And is passed over by the next one, which begins where this one ended."""
    data = b"".join(map(frame, (1, 4, 5, 6, 2, 3)))
    end = 1000 + len(frame(1) + frame(4))
    for limit in ({"most": 2}, {"until": end}):
        _, found = scan(data, **limit)
        assert numbers(found) == [1, 4, 2, 3]
        assert (found.end, found.sequence) == (end, 5)
        assert [each.missing for each in found.damages] == [0]
        _, rest = scan(data[end - 1000 :], 5)
        assert (numbers(rest), rest.damages) == ([5, 6], [])


def test_one_frame_is_taken_though_it_begins_behind_the_end_of_the_pass() -> None:
    _, found = scan(b"\x01" * 900 + frame(1) + frame(2), until=1010)
    assert numbers(found) == [1]


def test_zeros_between_frames_are_padding() -> None:
    """So that a group of frames may end where a block ends."""
    _, found = scan(frame(1).ljust(512, b"\0") + frame(2) + bytes(4096))
    assert numbers(found) == [1, 2]
    assert found.damages == []


def test_frames_of_an_earlier_use_of_the_file_are_none() -> None:
    stale = encode_frame(encode_payload(short_record(9)), 9, STAMP + 1)
    scanner, found = scan(frame(1) + stale)
    assert numbers(found) == [1]
    assert scanner.rest(found) == stale


def test_a_gap_is_told_with_its_numbers() -> None:
    _, found = scan(frame(1) + frame(4))
    assert numbers(found) == [1, 4]
    (damage,) = found.damages
    assert (damage.after, damage.missing, damage.raw) == (1, 2, b"")


def test_a_number_that_comes_again_is_read_once() -> None:
    _, found = scan(frame(1) + frame(2) + frame(2) + frame(1) + frame(3))
    assert numbers(found) == [1, 2, 3]
    assert found.damages == []


def test_a_missing_number_that_comes_later_is_taken() -> None:
    _, found = scan(frame(1) + frame(3) + frame(2) + frame(4))
    assert numbers(found) == [1, 3, 2, 4]
    assert [damage.missing for damage in found.damages] == [0]


def test_damage_costs_its_frame_alone_and_its_bytes_are_kept() -> None:
    bad = bytearray(frame(2))
    bad[40] ^= 1
    _, found = scan(frame(1) + bytes(bad) + frame(3))
    assert numbers(found) == [1, 3]
    (damage,) = found.damages
    assert (damage.after, damage.missing, damage.raw) == (1, 1, bytes(bad))
    assert damage.start == 1000 + len(frame(1))


def test_an_unknown_first_number_is_adopted() -> None:
    _, found = scan(frame(8) + frame(9), sequence=0)
    assert (numbers(found), found.sequence, found.damages) == ([8, 9], 10, [])


def test_the_end_frame_is_seen_and_is_no_record() -> None:
    _, found = scan(frame(1) + encode_frame(b"", 2, STAMP, FrameKind.END))
    assert (numbers(found), found.is_ended, found.sequence) == ([1], True, 3)


def test_a_whole_frame_that_is_no_record_is_a_fault() -> None:
    _, found = scan(encode_frame(b"\x80", 1, STAMP) + frame(2))
    assert [each.record is None for each in found.frames] == [True, False]
    assert found.frames[0].fault.startswith("not a record")


def test_what_was_read_before_is_no_damage_but_missing_frames_there_are_taken() -> None:
    data = frame(1)[5:] + frame(3) + b"bad" + frame(4)
    scanner = SegmentScanner(data, 1000, STAMP, since=1000 + len(data) - len(frame(4)) - 3)
    found = scanner.scan(3)
    assert numbers(found) == [3, 4]
    assert [damage.raw for damage in found.damages] == [b"bad"]
