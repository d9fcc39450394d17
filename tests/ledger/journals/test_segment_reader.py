"""One segment's file: what is read behind a position, and what is told of the rest."""

import pytest
from journal_damage import encode_frame, short_record

from ledger.journals.layout import (
    HEADER_BYTES,
    SegmentHeader,
    encode_header,
    stamp_of,
)
from ledger.journals.payloads import encode_payload
from ledger.journals.segment_reader import SegmentReading, read_segment

NAME = "w0-a"


def header(segment: int, first: int) -> bytes:
    return encode_header(SegmentHeader(NAME, segment, 1, first))


def frames(segment: int, *numbers: int) -> bytes:
    stamp = stamp_of(NAME, segment)
    return b"".join(
        encode_frame(encode_payload(short_record(number)), number, stamp) for number in numbers
    )


@pytest.fixture
def read(tmp_path):
    def of(data: bytes, offset: int = 0, sequence: int = 0, following=None, segment=2, **more):
        path, after = tmp_path / f"{segment:012d}.segment", None
        path.write_bytes(data)
        if following is not None:
            after = tmp_path / f"{segment + 1:012d}.segment"
            after.write_bytes(following)
        limit = more.pop("limit_bytes", 4096)
        asked = SegmentReading(
            path, NAME, segment, offset, sequence, limit, more.pop("most", None), after, **more
        )
        return read_segment(asked)

    return of


def numbers(found) -> list[int]:
    return [frame.sequence for frame in found.frames]


def test_the_first_number_is_the_headers(read) -> None:
    found = read(header(2, 5) + frames(2, 5, 6))
    assert (numbers(found), found.sequence, found.damages) == ([5, 6], 7, [])


def test_a_gap_between_segments_is_told(read) -> None:
    found = read(header(2, 5) + frames(2, 5, 6), sequence=3)
    assert [(damage.after, damage.missing) for damage in found.damages] == [(2, 2)]


@pytest.mark.parametrize("limit_bytes", [64, 700, 10**6])
def test_a_small_limit_only_takes_more_reads(read, limit_bytes) -> None:
    data = header(2, 5) + frames(2, *range(5, 60))
    found = read(data, limit_bytes=limit_bytes)
    assert numbers(found)[0] == 5
    assert found.more is (found.end < len(data))


def test_frames_that_moved_before_the_position_are_found(read) -> None:
    """Bytes were cut out before it: what lies ahead came nearer."""
    data = header(2, 5) + frames(2, *range(5, 20))
    offset = HEADER_BYTES + len(frames(2, 5, 6, 7, 8, 9))
    cut = data[: HEADER_BYTES + 40] + data[HEADER_BYTES + 41 :]
    found = read(cut, offset, 10)
    assert numbers(found) == list(range(10, 20))


def test_a_segment_that_shrank_is_read_from_its_start(read) -> None:
    data = header(2, 5) + frames(2, *range(5, 20))
    found = read(data[: HEADER_BYTES + 100] + frames(2, 20), len(data), 20)
    assert numbers(found) == [20]
    assert "shorter" in found.damages[0].reason


@pytest.mark.parametrize(("sure", "told"), [(9, False), (10, True), (None, True)])
def test_a_segment_that_a_power_cut_shortened_is_whole_to_its_last_flush(read, sure, told) -> None:
    """The books had read further: what they have and the disk does not was in no flush."""
    data = header(2, 5) + frames(2, *range(5, 20))
    rest = header(2, 5) + frames(2, *range(5, 10)) + frames(2, 10)[:-7]
    found = read(rest, len(data), 20, sure=sure)
    assert bool(found.damages) is told
    assert found.frames == []
    if not told:
        assert (found.end, found.sequence, found.more) == (len(data), 20, False)


def test_what_follows_says_how_many_lack_at_a_segments_end(read) -> None:
    data = header(2, 5) + frames(2, 5, 6)
    whole = read(data, following=header(3, 7))
    assert whole.damages == []
    cut = read(data[:-3], following=header(3, 9))
    assert [(damage.after, damage.missing) for damage in cut.damages] == [(5, 3)]
    assert (cut.sequence, cut.end) == (9, len(data) - 3)


@pytest.mark.parametrize(("written", "missing"), [(5, []), (6, [1]), (8, [3]), (None, [])])
def test_a_live_tail_is_damage_where_it_was_certainly_written(read, written, missing) -> None:
    data = header(2, 5) + frames(2, 5) + frames(2, 6)[:-1]
    found = read(data, is_live=True, written=written)
    assert (numbers(found), found.sequence) == ([5], 6)
    assert [damage.missing for damage in found.damages] == missing


@pytest.mark.parametrize("size", [0, 1, 100, HEADER_BYTES - 1])
def test_a_segment_that_was_just_begun_is_waited_for(read, size) -> None:
    found = read(header(1, 1)[:size], is_live=True, written=0, segment=1)
    assert (found.frames, found.damages) == ([], [])


def test_what_was_moved_beyond_the_end_of_a_read_is_found(read) -> None:
    moved = header(2, 1) + frames(2, 1, *range(4, 40), 2, 3)
    found = read(moved, limit_bytes=500)
    assert numbers(found)[-2:] == [2, 3]
    assert [damage.missing for damage in found.damages] == [0]
    assert found.more
