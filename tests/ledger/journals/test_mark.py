"""How far a worker wrote, beside its journal: read after any death, and never too high."""

import errno
import os
from pathlib import Path

import pytest

from ledger.journals import mark as marks
from ledger.journals.layout import HEAD_BYTES, HEADER_BYTES, encode_head
from ledger.journals.mark import (
    WRITTEN,
    MarkReading,
    StoredBlock,
    WriteMark,
    read_boot_id,
    read_mark,
    read_mount_id,
    writes_in_place,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "holder"


@pytest.fixture(params=[True, False], ids=["mapped", "stored"])
def mark(path: Path, request, monkeypatch):
    monkeypatch.setattr(marks, "writes_in_place", lambda _file: request.param)
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    made = WriteMark(file)
    yield made
    made.close()
    os.close(file)


def head_of(number: int) -> bytes:
    return encode_head(b"payload", number, 77)


def record(mark, number: int) -> None:
    mark.memory[WRITTEN[number & 1]] = head_of(number)


@pytest.mark.parametrize("start", [1, 2**32 - 3])
def test_numbers_are_read_back_at_once(mark, path: Path, start) -> None:
    assert read_mark(path)[:2] == (0, 0)
    for number in range(start, start + 6):
        record(mark, number)
        mark.record_flushed(head_of(number), number)
        file = os.open(path, os.O_RDONLY)
        here = MarkReading(number, number, read_boot_id(), read_mount_id(file))
        os.close(file)
        assert read_mark(path) == here


@pytest.mark.parametrize("bit", range(0, 8 * 4 * HEAD_BYTES, 3))
def test_a_wrong_bit_makes_no_number_higher(mark, path: Path, bit) -> None:
    for number in (41, 42):
        record(mark, number)
        mark.record_flushed(head_of(number), number)
    block = bytearray(path.read_bytes())
    block[bit // 8] ^= 1 << bit % 8
    copy = path.with_name("copy")
    copy.write_bytes(block)
    found = read_mark(copy)
    assert found.written in (41, 42)
    assert found.flushed in (41, 42)


def test_a_kill_within_a_store_leaves_the_number_before(mark, path: Path) -> None:
    record(mark, 41)
    mark.memory[slice(0, HEAD_BYTES // 2)] = head_of(42)[: HEAD_BYTES // 2]
    assert read_mark(path).written == 41


def test_after_another_boot_only_what_was_flushed_counts() -> None:
    read = MarkReading(9, 7, "boot-a")
    assert read.sure("boot-a") == 9
    assert read.sure("boot-b") == 7
    assert read.sure("") == 7


@pytest.mark.parametrize(
    ("mark_mount", "boot", "mount", "is_remounted"),
    [
        ("vda:7", "boot-a", "vda:9", True),
        ("vda:7", "boot-a", "vda:7", False),
        ("vda:7", "boot-b", "vda:9", False),  # numbers that were flushed count then
        ("", "boot-a", "vda:9", False),  # an earlier version's
        ("vda:7", "boot-a", "", False),
        ("vda:7", "", "vda:9", False),
    ],
)
def test_another_mount_of_one_boot_is_known(mark_mount, boot, mount, is_remounted) -> None:
    assert MarkReading(9, 7, "boot-a", mark_mount).is_remounted(boot, mount) is is_remounted


def test_a_file_system_without_a_disk_has_no_mounts_id() -> None:
    with Path("/proc/self/status").open() as file:
        assert read_mount_id(file.fileno()) == ""


@pytest.mark.parametrize("data", [None, b"", b"x" * 100, bytes(HEADER_BYTES)])
def test_a_missing_or_damaged_mark_says_nothing(path: Path, data) -> None:
    if data is not None:
        path.write_bytes(data)
    assert read_mark(path)[:2] == (None, None)


def test_memory_is_mapped_only_where_a_block_is_written_in_place(tmp_path: Path, monkeypatch):
    """`tests/ledger/journals/test_bad_disks.py` fills a Btrfs; here its type is enough."""
    with (tmp_path / "file").open("w+b") as file:
        monkeypatch.setattr(marks, "_IN_PLACE", frozenset())
        assert not writes_in_place(file.fileno())
        made = WriteMark(file.fileno())
        assert isinstance(made.memory, StoredBlock)
    assert not writes_in_place(-1)


def test_a_full_disk_refuses_a_store_and_an_older_flushed_number_stays(path: Path, monkeypatch):
    monkeypatch.setattr(marks, "writes_in_place", lambda _file: False)
    file = os.open(path, os.O_RDWR | os.O_CREAT)
    made = WriteMark(file)
    made.record_flushed(head_of(41), 41)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    with pytest.raises(OSError, match="No space"):
        record(made, 42)
    made.record_flushed(head_of(42), 42)
    assert read_mark(path).flushed == 41
    os.close(file)
