"""Where journals lie: earlier versions see nothing of format 2, and later formats are noticed."""

import os

import pytest
from old_journal import OldWriter

from ledger.journals.homes import (
    DAMAGED,
    FOLDER,
    OWNER_FILE,
    has_owner,
    keep_copy,
    later_journals,
    list_journals,
    segments,
    segments_of_worker,
)
from ledger.journals.journal import JournalWriter


def test_format_1_sees_nothing_of_format_2(tmp_path, opened) -> None:
    """Its patterns, as they stand in every version that wrote it."""
    writer = JournalWriter(tmp_path, "w0")
    writer.append(opened(1))
    writer.close()
    assert list(tmp_path.glob(f"[!.]*/{OWNER_FILE}")) == []
    assert [path for home in tmp_path.glob("w0-*") for path in home.glob("*.journal")] == []
    old = OldWriter(tmp_path, "w0")
    assert len(list(tmp_path.glob(f"[!.]*/{OWNER_FILE}"))) == 1  # the control
    old.close()


def test_older_journals_come_first(tmp_path, opened) -> None:
    new = JournalWriter(tmp_path, "w0", new_id=lambda: "a")
    old = OldWriter(tmp_path, "w1", name="z")
    for writer in (new, old):
        writer.append(opened(1))
    found = list_journals(tmp_path)
    assert [(journal.name, journal.worker, journal.format) for journal in found] == [
        ("w1-z", "w1", 1),
        ("w0-a", "w0", 2),
    ]
    assert [has_owner(journal) for journal in found] == [True, True]
    assert [len(segments(journal)) for journal in found] == [1, 1]
    assert len(segments_of_worker(tmp_path, "w1")) == 1
    new.close()
    old.close()
    assert [has_owner(journal) for journal in found] == [False, False]


def test_a_folder_without_its_lock_is_still_a_journal(tmp_path, opened) -> None:
    """A disk that loses the lock file must not hide the rows beside it."""
    writer = JournalWriter(tmp_path, "w0")
    writer.append(opened(1))
    writer.close()
    (tmp_path / FOLDER / writer.name / "holder").unlink()
    assert [journal.name for journal in list_journals(tmp_path)] == [writer.name]


def test_later_formats_are_noticed_while_journals_lie_there(tmp_path) -> None:
    for name in ("v2/w0-a", "v3", "v10/w0-a", "vx/w0-a", DAMAGED + "/w0-a"):
        (tmp_path / name).mkdir(parents=True)
    assert later_journals(tmp_path) == [tmp_path / "v10"]
    assert later_journals(tmp_path / "nowhere") == []


@pytest.mark.parametrize("links", [True, False])
def test_a_damaged_segment_outlives_its_journal(tmp_path, opened, monkeypatch, links) -> None:
    writer = JournalWriter(tmp_path, "w0")
    writer.append(opened(1))
    writer.close()
    (journal,) = list_journals(tmp_path)
    (path,) = segments(journal)
    if not links:

        def refuse(*_):
            raise PermissionError

        monkeypatch.setattr(os, "link", refuse)
    data = path.read_bytes()
    for _ in range(2):
        keep_copy(tmp_path, journal, path)
    path.unlink()
    kept = tmp_path / DAMAGED / journal.name / path.name
    assert kept.exists() is links
    assert not links or kept.read_bytes() == data
