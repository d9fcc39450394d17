"""How far a worker wrote, beside its journal: read after any death, and never too high."""

import os
from pathlib import Path

import pytest

from ledger.journals.layout import HEADER_BYTES
from ledger.journals.mark import MarkReading, WriteMark, read_boot_id, read_mark


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "holder"


@pytest.fixture
def mark(path: Path):
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    made = WriteMark(file)
    yield made
    made.close()
    os.close(file)


def test_numbers_are_read_back_at_once(mark, path: Path) -> None:
    assert read_mark(path)[:2] == (0, 0)
    for number in range(1, 6):
        mark.record_written(number)
        mark.record_flushed(number - 1)
        assert read_mark(path) == MarkReading(number, number - 1, read_boot_id())


@pytest.mark.parametrize("bit", range(0, 8 * 64, 3))
def test_a_wrong_bit_makes_no_number_higher(mark, path: Path, bit) -> None:
    for number in (41, 42):
        mark.record_written(number)
        mark.record_flushed(number)
    block = bytearray(path.read_bytes())
    block[bit // 8] ^= 1 << bit % 8
    copy = path.with_name("copy")
    copy.write_bytes(block)
    found = read_mark(copy)
    assert found.written in (41, 42)
    assert found.flushed in (41, 42)


def test_a_kill_between_two_stores_leaves_the_number_before(mark, path: Path) -> None:
    mark.record_written(41)
    mark._cells[0] = 42  # without its complement
    assert read_mark(path).written == 41


def test_after_another_boot_only_what_was_flushed_counts() -> None:
    read = MarkReading(9, 7, "boot-a")
    assert read.sure("boot-a") == 9
    assert read.sure("boot-b") == 7
    assert read.sure("") == 7


@pytest.mark.parametrize("data", [None, b"", b"x" * 100, bytes(HEADER_BYTES)])
def test_a_missing_or_damaged_mark_says_nothing(path: Path, data) -> None:
    if data is not None:
        path.write_bytes(data)
    assert read_mark(path)[:2] == (None, None)
