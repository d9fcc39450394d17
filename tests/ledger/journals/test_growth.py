"""A journal that grows, comes or loses its owner is seen; one that rests is not read."""

import os
from pathlib import Path

import pytest

from ledger.journals import growth
from ledger.journals.growth import JournalGrowth
from ledger.journals.homes import OWNER_FILE, list_journals
from ledger.journals.journal import JournalWriter


@pytest.fixture
def watched(tmp_path: Path):
    made = JournalGrowth(tmp_path)
    yield made
    made.close()


@pytest.fixture
def aged(tmp_path: Path):
    """Make what changed in the directory a while old."""

    def age() -> None:
        for folder in (tmp_path, tmp_path / "v2"):
            if folder.exists():
                os.utime(folder, ns=(1, 1))

    return age


@pytest.fixture
def listings(monkeypatch) -> list[Path]:
    """Count listings of the journals."""
    seen: list[Path] = []

    def listed(directory: Path):
        seen.append(directory)
        return list_journals(directory)

    monkeypatch.setattr(growth, "list_journals", listed)
    return seen


def test_each_record_moves_a_mark_and_rest_moves_none(
    tmp_path, watched, opened, aged, listings
) -> None:
    journal = JournalWriter(tmp_path, "w0")
    aged()
    first = watched.marks()
    assert first is not None
    assert [name for name, _ in first] == [journal.name]
    assert [watched.marks() for _ in range(5)] == [first] * 5
    assert len(listings) == 1
    seen = {first}
    for number in range(4):
        journal.append(opened(number))
        seen.add(watched.marks())
    assert len(seen) == 5
    assert len(listings) == 1
    journal.close()


def test_a_new_journal_is_seen_however_soon_it_comes(tmp_path, watched, opened) -> None:
    """Folders' times are coarse: what changed lately is listed again."""
    assert watched.marks() == ()
    journals = []
    for number in range(5):
        journals.append(JournalWriter(tmp_path, f"w{number}"))
        marks = watched.marks()
        assert marks is not None
        assert len(marks) == number + 1
    for journal in journals:
        journal.close()


def test_a_journal_without_its_owner_is_to_be_read(tmp_path, watched, opened, aged) -> None:
    journal = JournalWriter(tmp_path, "w0")
    aged()
    assert watched.marks() is not None
    journal.close()
    assert watched.marks() is None


def test_journals_without_marks_are_always_read(tmp_path, watched) -> None:
    (tmp_path / "old-1").mkdir()
    (tmp_path / "old-1" / OWNER_FILE).touch()
    assert watched.marks() is None


def test_what_cannot_be_looked_at_is_to_be_read(tmp_path, watched, monkeypatch) -> None:
    def fail(_directory: Path):
        raise OSError("EIO")

    monkeypatch.setattr(growth, "list_journals", fail)
    assert watched.marks() is None


def test_files_do_not_stay_open(tmp_path, watched, aged) -> None:
    def files() -> int:
        return len(os.listdir("/proc/self/fd"))  # noqa: PTH208  (names alone)

    journals = [JournalWriter(tmp_path, f"w{number}") for number in range(3)]
    before = files()
    for _ in range(3):
        watched.marks()
    assert files() == before + 3
    watched.close()
    assert files() == before
    for journal in journals:
        journal.close()
