"""A segment's bytes, wherever they are: in its file, in memory, in both or partly in one."""

import pytest

from ledger.journals.layout import HEADER_BYTES, parse_header
from ledger.journals.pending import PendingGroup
from ledger.journals.segment_bytes import SegmentBytes


def group(offset: int, data: bytes, segment: int = 1, first: int = 5) -> PendingGroup:
    return PendingGroup(segment, offset, first, data)


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "000000000001.segment"
    made.write_bytes(bytes(HEADER_BYTES) + b"abcdef")
    return made


def rest(content: SegmentBytes) -> bytes:
    return content.read(HEADER_BYTES, content.size)


def test_a_file_alone_is_its_bytes(path) -> None:
    content = SegmentBytes(path, "w0-a", [])
    assert (content.size, rest(content)) == (HEADER_BYTES + 6, b"abcdef")


def test_what_is_pending_follows_the_file(path) -> None:
    groups = [group(HEADER_BYTES + 6, b"gh"), group(HEADER_BYTES + 8, b"ij")]
    content = SegmentBytes(path, "w0-a", groups)
    assert rest(content) == b"abcdefghij"
    whole = content.read(0, content.size)
    for since in range(HEADER_BYTES - 2, content.size):
        for limit in range(1, 14):
            assert content.read(since, limit) == whole[since : since + limit]


def test_half_a_group_in_the_file_is_made_whole(path) -> None:
    assert rest(SegmentBytes(path, "w0-a", [group(HEADER_BYTES + 3, b"defgh")])) == b"abcdefgh"


def test_of_what_the_file_has_the_file_says_what_became(path) -> None:
    """A memory of it must not hide that the disk damaged it."""
    assert rest(SegmentBytes(path, "w0-a", [group(HEADER_BYTES, b"??????")])) == b"abcdef"


@pytest.mark.parametrize(("has_gaps", "wanted"), [(False, b"abcdef"), (True, b"abcdef\0\0ij")])
def test_behind_a_gap_there_is_something_for_the_dead_alone(path, has_gaps, wanted) -> None:
    groups = [group(HEADER_BYTES + 8, b"ij")]
    assert rest(SegmentBytes(path, "w0-a", groups, has_gaps=has_gaps)) == wanted


@pytest.mark.parametrize("made", [True, False])
def test_a_segment_that_has_no_file_yet_has_its_header(tmp_path, made) -> None:
    path = tmp_path / "000000000002.segment"
    if made:
        path.touch()
    content = SegmentBytes(path, "w0-a", [group(HEADER_BYTES, b"xyz", segment=2)])
    header = parse_header(content.read(0, HEADER_BYTES))
    assert header is not None
    assert (header.journal, header.segment, header.first) == ("w0-a", 2, 5)
    assert rest(content) == b"xyz"


def test_nothing_anywhere_is_no_segment(tmp_path) -> None:
    with pytest.raises(FileNotFoundError):
        SegmentBytes(tmp_path / "000000000003.segment", "w0-a", [])
