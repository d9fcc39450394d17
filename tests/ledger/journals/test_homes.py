"""Where journals lie: earlier versions see nothing of format 2, and later formats are noticed."""

import os

import pytest
from old_journal import OldWriter

from ledger.journals.homes import (
    DAMAGED,
    FOLDER,
    OWNER_FILE,
    copies,
    has_owner,
    keep_copy,
    later_journals,
    list_journals,
    removed_file,
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


def test_a_live_journal_is_owned_without_its_lock_file_too(tmp_path, opened) -> None:
    writer = JournalWriter(tmp_path, "w0", segment_bytes=2_000)
    (journal,) = list_journals(tmp_path)
    journal.lock.unlink()
    for number in range(30):  # over several segments: each is locked while it is the newest
        writer.append(opened(number))
        assert has_owner(journal)
    assert len(segments(journal)) > 2
    writer.close()
    assert not has_owner(journal)


def test_what_people_put_among_journals_and_copies_is_passed_over(tmp_path, opened) -> None:
    writer = JournalWriter(tmp_path, "w0")
    writer.close()
    (tmp_path / FOLDER / "before-the-move").mkdir()
    (tmp_path / FOLDER / "loop-0123456789abcdef").symlink_to("loop-0123456789abcdef")
    (tmp_path / DAMAGED / "w-1").mkdir(parents=True)
    (tmp_path / DAMAGED / "owner").touch()
    (tmp_path / DAMAGED / "w-1" / "notes.txt").touch()
    (tmp_path / DAMAGED / "w-1" / "000000000002.segment").mkdir()
    copy = tmp_path / DAMAGED / "w-1" / "000000000001.segment"
    copy.touch()
    assert [journal.name for journal in list_journals(tmp_path)] == [writer.name]
    assert copies(tmp_path) == [copy]


def test_a_file_that_a_live_journal_needs_is_named_while_it_is_away(tmp_path, opened) -> None:
    writer = JournalWriter(tmp_path, "w0")
    home = tmp_path / FOLDER / writer.name
    assert removed_file(home, writer._holder, writer._file) is None
    home.rename(tmp_path / "away")
    assert str(home / "holder") in (writer.refusal() or "")
    (tmp_path / "away").rename(home)
    assert writer.refusal() is None
    writer.append(opened(1))
    writer.close()


@pytest.mark.parametrize("second_name", [True, False])
def test_a_segment_that_readers_do_not_find_takes_no_new_work(
    tmp_path, opened, second_name
) -> None:
    """Red before with a second name, as a damaged segment has: answered requests had no rows."""
    writer = JournalWriter(tmp_path, "w0")
    writer.append(opened(1))
    (journal,) = list_journals(tmp_path)
    (path,) = segments(journal)
    if second_name:
        keep_copy(tmp_path, journal, path)
    moved = path.rename(tmp_path / "away")
    assert "its newest segment was removed" in (writer.refusal() or "")
    moved.rename(path)
    assert writer.refusal() is None
    path.unlink()
    assert "its newest segment was removed" in (writer.refusal() or "")
    writer.close()
