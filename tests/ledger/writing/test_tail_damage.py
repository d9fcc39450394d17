"""Damaged journals in the books: what is intact is booked, what lacks is a finding, until seen."""

import logging
import os
import shutil
import signal

import pytest
from old_journal import OldWriter
from sqlalchemy import func, select

from deploy import warmstart
from ledger.journals.findings import LackingBound
from ledger.journals.homes import DAMAGED, FOLDER
from ledger.journals.journal import JournalFull, JournalWriter
from ledger.journals.layout import HEADER_BYTES
from ledger.journals.reader import JournalReader
from ledger.orm import tables as orm
from ledger.seals.audit_log import AuditLog, changes
from ledger.verify.checks import verify
from ledger.writing.findings import (
    acknowledge,
    finding_totals,
    open_findings,
    open_journal_findings,
)
from ledger.writing.repository import LedgerRepository
from ledger.writing.tail import JournalTailer

BOUND = LackingBound(9 * 10**10, 9 * 10**10)
JOURNAL_CHECKS = {"nothing_is_quarantined", "journals_are_whole"}


def tail_of(engine, directory, **more):
    repository = LedgerRepository(engine, host="h1")
    return JournalTailer(repository, JournalReader(directory), lambda: 77, lambda _: BOUND, **more)


def drain(tail):
    for _ in range(1000):
        step = tail.step()
        if not step.moved and not step.buried:
            return
    raise AssertionError("the journals never end")


def settled_rows(engine) -> set[str]:
    with engine.connect() as connection:
        query = select(orm.AttemptRow.attempt_id).where(orm.AttemptRow.flag.is_(None))
        return set(connection.execute(query).scalars())


def journal_faults(engine) -> list[str]:
    with engine.connect() as connection:
        return [
            finding.message
            for finding in verify(connection).findings
            if finding.check in JOURNAL_CHECKS
        ]


def write_attempts(writer, opened, settled, numbers) -> dict[int, tuple[int, int]]:
    """Where each attempt's two frames begin and end."""
    places = {}
    for number in numbers:
        start = HEADER_BYTES + writer._offset
        writer.append(opened(number, holds=()))
        writer.append_ending(settled(number))
        places[number] = start, HEADER_BYTES + writer._offset
    return places


def segment(directory, writer):
    return max((directory / FOLDER / writer.name).glob("*.segment"))


def flip(path, place, bit=0):
    with path.open("r+b") as file:
        file.seek(place)
        (byte,) = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ 1 << bit]))


def names(*numbers):
    return {f"r{number}.1" for number in numbers}


def test_a_flipped_length_costs_one_row_and_is_told_until_somebody_has_seen_it(
    engine, tmp_path, opened, settled, caplog
):
    writer = JournalWriter(tmp_path, "w0")
    places = write_attempts(writer, opened, settled, range(40))
    writer.close()
    flip(segment(tmp_path, writer), places[20][0] + 6, bit=3)  # length + 524,288 of the open
    with caplog.at_level(logging.ERROR):
        drain(tail_of(engine, tmp_path))
    assert settled_rows(engine) == names(*{*range(40)} - {20})
    assert "a journal is damaged" in caplog.text
    told = journal_faults(engine)
    assert any("may lack 1 records after record 40, at most $0.0900" in text for text in told)
    assert any("a settle without its open" in text for text in told)
    with engine.connect() as connection:
        totals = finding_totals(connection)
        raw = connection.execute(select(orm.QuarantinedRecordRow.record)).scalars().all()
    assert (totals.count, totals.at_most_pusd, totals.unbounded) == (2, 9 * 10**10, 0)
    assert len(raw) == 2
    kept = tmp_path / DAMAGED / writer.name
    assert len(list(kept.iterdir())) == 1
    with engine.begin() as connection:
        seen = {finding.place for finding in open_findings(connection)}
        acknowledge(connection, seen, by="ann", note="disk replaced", at_us=99)
    assert journal_faults(engine) == []
    while AuditLog(engine).follow(at_us=100):
        pass
    with engine.connect() as connection:
        assert {entry.actor for entry in changes(connection, 10)} == {"ann"}
        assert finding_totals(connection).count == 0


@pytest.mark.parametrize("applied", [0, 10])
def test_flipped_while_the_worker_lives_its_rows_go_on(engine, tmp_path, opened, settled, applied):
    writer = JournalWriter(tmp_path, "w0")
    tail = tail_of(engine, tmp_path)
    places = write_attempts(writer, opened, settled, range(applied))
    drain(tail)
    places = write_attempts(writer, opened, settled, range(applied, 20))
    flip(segment(tmp_path, writer), places[15][0] + 6, bit=3)
    drain(tail)
    write_attempts(writer, opened, settled, range(20, 60))
    drain(tail)
    assert settled_rows(engine) == names(*{*range(60)} - {15})
    assert tail.stalled() is None
    assert journal_faults(engine)
    writer.close()
    drain(tail)
    assert JournalReader(tmp_path).journals() == []


def test_the_newest_row_of_a_live_worker_is_told_while_nothing_follows(
    engine, tmp_path, opened, settled
):
    writer = JournalWriter(tmp_path, "w0")
    places = write_attempts(writer, opened, settled, range(3))
    flip(segment(tmp_path, writer), places[2][1] - 3)
    now_s = [0.0]
    tail = tail_of(engine, tmp_path, now_s=lambda: now_s[0])
    for _ in range(4):
        tail.step()
        now_s[0] += 5.0
    assert len(journal_faults(engine)) == 1
    assert tail.stalled() is None  # nothing lies behind it
    write_attempts(writer, opened, settled, [3])
    writer.close()
    drain(tail)
    assert len(journal_faults(engine)) == 1
    assert settled_rows(engine) == names(0, 1, 3)


WORKER = """
import sys
from pathlib import Path
from ledger.journals.journal import JournalFull, JournalWriter
from ledger.journals.records import RequestRefused

writer = JournalWriter(Path(sys.argv[1]), "w0", segment_bytes=400_000)
for number in range(10**9):
    model = "m" * (1000 * (number % 40))
    writer.append(RequestRefused(f"r{number}", 1, "k", "t", "o", model, "p", "budget", 429))
    if number == 100:
        print(flush=True)
"""


@pytest.mark.parametrize("torn", [0, 1, 30, 31, 40, 200])
def test_the_torn_tail_of_a_kill_is_no_damage(engine, tmp_path, torn):
    """Really killed; then as much more of a frame as the kernel may have taken of the last one."""
    process = warmstart.programs().open([tmp_path], program=WORKER)
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    (home,) = (tmp_path / FOLDER).iterdir()
    last = max(home.glob("*.segment"))
    frame = last.read_bytes()[HEADER_BYTES:]
    with last.open("ab") as file:
        file.write(frame[:torn] + bytes(torn % 7))
    drain(tail_of(engine, tmp_path))
    assert journal_faults(engine) == []
    assert JournalReader(tmp_path).journals() == []


@pytest.mark.parametrize("kept", ["none", "header", "half"])
def test_a_tail_that_the_disk_lost_is_told(engine, tmp_path, opened, settled, kept):
    """The same bytes as after a kill; but these frames had been written whole."""
    writer = JournalWriter(tmp_path, "w0")
    places = write_attempts(writer, opened, settled, range(10))
    path = segment(tmp_path, writer)
    if kept == "none":
        path.unlink()
    else:
        os.truncate(path, HEADER_BYTES if kept == "header" else places[5][0] + 100)
    writer._mark.close()  # as the process's death does
    for file in (writer._file, writer._holder):
        os.close(file)
    drain(tail_of(engine, tmp_path))
    lost = 20 if kept != "half" else 10
    assert any(f"may lack {lost} records" in text for text in journal_faults(engine))


def test_a_journal_that_vanishes_is_told_and_one_that_ended_is_not(
    engine, tmp_path, opened, settled, monkeypatch
):
    writer = JournalWriter(tmp_path, "w0")
    write_attempts(writer, opened, settled, range(3))
    writer.append(opened(7))
    drain(tail_of(engine, tmp_path))
    shutil.rmtree(tmp_path / FOLDER / writer.name)
    drain(tail_of(engine, tmp_path))
    assert any("its files are gone" in text for text in journal_faults(engine))
    with engine.begin() as connection:
        seen = {finding.place for finding in open_journal_findings(connection)}
        acknowledge(connection, seen, by="ann", note=None, at_us=99)
        flags = connection.execute(select(orm.AttemptRow.flag)).scalars().all()
    assert flags.count("lost") == 1
    other = JournalWriter(tmp_path, "w1")
    write_attempts(other, opened, settled, [9])
    other.close()
    monkeypatch.setattr(LedgerRepository, "forget_journal", lambda *_: None)  # killed before it
    drain(tail_of(engine, tmp_path))
    monkeypatch.undo()
    drain(tail_of(engine, tmp_path))
    assert journal_faults(engine) == []


def test_a_journal_that_cannot_be_read_stops_no_other_and_is_told(
    engine, tmp_path, opened, settled, monkeypatch
):
    writers = [JournalWriter(tmp_path, name) for name in ("w0", "w1")]
    for number, writer in enumerate(writers):
        write_attempts(writer, opened, settled, [number])
    tail, real = tail_of(engine, tmp_path), JournalReader.read

    def read(self, journal, since, **more):
        if journal.worker == "w0":
            raise OSError(5, "Input/output error", "segment")
        return real(self, journal, since, **more)

    monkeypatch.setattr(JournalReader, "read", read)
    tail.step()
    assert settled_rows(engine) == names(1)
    assert "Input/output error" in tail.stalled()
    monkeypatch.undo()
    drain(tail)
    assert tail.stalled() is None
    assert settled_rows(engine) == names(0, 1)
    for writer in writers:
        writer.close()


def test_a_directory_that_cannot_be_listed_is_told(engine, tmp_path, monkeypatch):
    tail = tail_of(engine, tmp_path)

    def fail(_):
        raise OSError(5, "Input/output error", "journal")

    monkeypatch.setattr(JournalReader, "journals", fail)
    assert not tail.step().moved
    assert "Input/output error" in tail.stalled()
    assert tail.backlog_bytes() == 0
    monkeypatch.undo()
    tail.step()
    assert tail.stalled() is None


def test_a_live_worker_whose_bytes_are_no_frame_stalls_after_two_seconds(
    engine, tmp_path, opened, settled
):
    """Half a frame that is never finished: neither damage nor readable."""
    writer, now_s = JournalWriter(tmp_path, "w0"), [0.0]
    write_attempts(writer, opened, settled, [0])
    with segment(tmp_path, writer).open("ab") as file:
        file.write(b"half")
    tail = tail_of(engine, tmp_path, now_s=lambda: now_s[0])
    for now_s[0] in (0.0, 0.1, 1.0):
        tail.step()
        assert tail.stalled() is None
    now_s[0] = 2.5
    tail.step()
    assert "is not a frame" in tail.stalled()
    assert journal_faults(engine) == []
    write_attempts(writer, opened, settled, [1])
    drain(tail)
    assert tail.stalled() is None
    assert settled_rows(engine) == names(0, 1)
    writer.close()


def test_journals_of_both_formats_are_booked_side_by_side(engine, tmp_path, opened, settled):
    """As after an upgrade: a journal that nobody delivered, and one that lives."""
    old, new = OldWriter(tmp_path, "w0"), JournalWriter(tmp_path, "w0")
    for number in range(5):
        old.append(opened(number, holds=()))
        old.append(settled(number))
    write_attempts(new, opened, settled, range(5, 9))
    old.close()
    drain(tail_of(engine, tmp_path))
    assert settled_rows(engine) == names(*range(9))
    assert [journal.name for journal in JournalReader(tmp_path).journals()] == [new.name]
    new.close()
    drain(tail_of(engine, tmp_path))
    assert journal_faults(engine) == []


def test_a_live_journal_of_format_1_that_cannot_be_read_on_is_told(
    engine, tmp_path, opened, settled
):
    old, now_s = OldWriter(tmp_path, "w0"), [0.0]
    for number in range(5):
        old.append(opened(number, holds=()))
        old.append(settled(number))
    flip(old.segment, 2, bit=3)
    tail = tail_of(engine, tmp_path, now_s=lambda: now_s[0])
    for now_s[0] in (0.0, 0.5, 3.0):
        tail.step()
    assert "is not a frame" in tail.stalled()
    old.close()


def test_what_is_read_again_is_booked_once(engine, tmp_path, opened, settled):
    """As after an earlier version, which forgets positions of journals that it does not know."""
    writer = JournalWriter(tmp_path, "w0")
    write_attempts(writer, opened, settled, range(5))
    drain(tail_of(engine, tmp_path))
    LedgerRepository(engine, host="h1").forget_journal(writer.name)
    writer.close()
    drain(tail_of(engine, tmp_path))
    with engine.connect() as connection:
        postings = connection.execute(select(func.count()).select_from(orm.PostingRow)).scalar_one()
    assert settled_rows(engine) == names(*range(5))
    assert postings == 10
    assert journal_faults(engine) == []


@pytest.mark.parametrize("restarts", [False, True])
def test_what_is_lost_behind_an_acknowledged_end_is_told_anew(
    engine, tmp_path, opened, settled, restarts
) -> None:
    writer = JournalWriter(tmp_path, "w0")
    (path,) = (tmp_path / FOLDER / writer.name).glob("*.segment")
    tail = tail_of(engine, tmp_path)
    write_attempts(writer, opened, settled, [1])
    drain(tail)
    losses = ([2], "2 records after record 2"), ([3, 4], "4 records after record 4")
    for numbers, lacking in losses:
        start = path.stat().st_size
        write_attempts(writer, opened, settled, numbers)
        with path.open("r+b") as file:
            file.seek(start)
            file.write(b"\x55" * (path.stat().st_size - start))
        tail = tail_of(engine, tmp_path) if restarts else tail
        drain(tail)
        (told,) = journal_faults(engine)
        assert f"may lack {lacking}" in told
        with engine.begin() as connection:
            places = {each.place for each in open_findings(connection)}
            acknowledge(connection, places, by="ann", note=None, at_us=9)
    write_attempts(writer, opened, settled, [5])
    writer.close()
    drain(tail)
    assert journal_faults(engine) == []
    assert len(settled_rows(engine)) == 2


@pytest.mark.parametrize("removed", ["holder", "holder made anew", "segment", "all"])
def test_what_is_removed_under_a_live_worker_is_refused_and_loses_nothing_acknowledged(
    engine, tmp_path, opened, settled, removed
):
    writer = JournalWriter(tmp_path, "w0")
    tail = tail_of(engine, tmp_path)
    write_attempts(writer, opened, settled, range(3))
    drain(tail)
    assert writer.refusal() is None
    home = tmp_path / FOLDER / writer.name
    if removed.startswith("holder"):
        (home / "holder").unlink()
        if removed.endswith("anew"):
            (home / "holder").touch()
        tail.step()
        assert home.is_dir(), "it has a live owner"
        write_attempts(writer, opened, settled, range(3, 6))  # until the worker looks
    elif removed == "segment":
        segment(tmp_path, writer).unlink()
    else:
        shutil.rmtree(home)
    drain(tail)
    assert str(home) in writer.refusal()
    with pytest.raises(JournalFull, match="removed"):
        writer.append(opened(7))
    writer.append_ending(settled(2))  # ends of what runs are written as long as they can be
    writer.close()
    drain(tail)
    assert settled_rows(engine) == names(*range(6 if removed.startswith("holder") else 3))
    if removed == "all":
        assert "its files are gone" in journal_faults(engine)[0]


def test_a_missing_middle_segment_of_format_1_is_told(engine, tmp_path, opened, settled):
    """Once, wherever reading stood; its frames have no numbers that would tell."""
    writer = OldWriter(tmp_path, "w0", segment_bytes=1)
    tail = tail_of(engine, tmp_path)
    for number in range(2):
        writer.append(opened(number, holds=()))
        writer.append(settled(number))
    drain(tail)
    first = writer._number
    for number in range(2, 6):
        writer.append(opened(number, holds=()))
        writer.append(settled(number))
    for number in (first + 3, first + 4):  # both of attempt 3
        (writer.home / f"{number:012d}.journal").unlink()
    drain(tail)
    writer.close()
    drain(tail)
    assert settled_rows(engine) == names(0, 1, 2, 4, 5)
    (told,) = journal_faults(engine)
    assert "2 segments before it are gone" in told


@pytest.mark.parametrize("begins", [1, 3])
def test_a_journal_of_format_1_begins_with_its_first_segment(
    engine, tmp_path, opened, settled, begins
):
    writer = OldWriter(tmp_path, "w0", segment_bytes=1)
    for number in range(2):
        writer.append(opened(number, holds=()))
        writer.append(settled(number))
    writer.close()
    for number in range(1, begins):
        (writer.home / f"{number:012d}.journal").unlink()
    drain(tail_of(engine, tmp_path))
    assert len(journal_faults(engine)) == (begins > 1)


@pytest.mark.parametrize("where", ["beside journals", "beside segments", "with a segment's name"])
def test_what_a_person_puts_among_journals_is_no_journal_and_stays(
    engine, tmp_path, opened, settled, where
):
    writer = JournalWriter(tmp_path, "w0")
    write_attempts(writer, opened, settled, range(3))
    name = {"beside segments": f"{writer.name}/notes", "beside journals": "before-the-move"}
    stray = tmp_path / FOLDER / name.get(where, f"{writer.name}/000000000009.segment")
    stray.mkdir()
    (stray / "notes.txt").write_text("kept")
    tail = tail_of(engine, tmp_path)
    drain(tail)
    assert tail.stalled() is None
    writer.close()
    drain(tail)
    assert settled_rows(engine) == names(0, 1, 2)
    assert journal_faults(engine) == []
    if where == "beside journals":
        assert (stray / "notes.txt").read_text() == "kept"
        assert JournalReader(tmp_path).journals() == []


def empty(_newest, there, _other):
    there.touch()


def text_file(_newest, there, _other):
    there.write_text("notes\n" * 2000)


def copy_of_newest(newest, there, _other):
    shutil.copy(newest, there)


def copy_of_another(_newest, there, other):
    shutil.copy(other, there)


@pytest.mark.parametrize("number", [2, 9])
@pytest.mark.parametrize("put", [empty, text_file, copy_of_newest, copy_of_another])
def test_a_file_with_a_later_segments_name_ends_no_live_one(
    engine, tmp_path, opened, settled, put, number
):
    writer = JournalWriter(tmp_path, "w0", segment_bytes=4096)
    other = JournalWriter(tmp_path, "w1")
    write_attempts(writer, opened, settled, range(2))
    write_attempts(other, opened, settled, range(40, 42))
    newest = segment(tmp_path, writer)
    put(newest, newest.with_name(f"{number:012d}.segment"), segment(tmp_path, other))
    tail = tail_of(engine, tmp_path)
    drain(tail)
    for some in (range(2, 4), range(4, 40)):  # in the same segment, and in the next ones
        write_attempts(writer, opened, settled, some)
        drain(tail)
        assert tail.backlog_bytes() == 0
    assert len(segment(tmp_path, writer).name) == len(newest.name)
    assert writer.refusal() is None
    writer.close()
    other.close()
    drain(tail)
    assert settled_rows(engine) == names(*range(42))
    assert journal_faults(engine) == []


def test_a_journal_that_cannot_be_removed_holds_up_no_other(
    engine, tmp_path, opened, settled, monkeypatch
):
    writers = [JournalWriter(tmp_path, f"w{number}") for number in range(2)]
    for number, writer in enumerate(writers):
        write_attempts(writer, opened, settled, [number])
        writer.close()
    stuck, real = tmp_path / FOLDER / writers[0].name, shutil.rmtree

    def remove(home):
        if home == stuck:
            raise PermissionError(13, "Permission denied", str(home))
        real(home)

    monkeypatch.setattr("ledger.journals.reader.shutil.rmtree", remove)
    tail = tail_of(engine, tmp_path)
    for _ in range(4):
        tail.step()
    assert [journal.home for journal in JournalReader(tmp_path).journals()] == [stuck]
    assert f"Permission denied: {stuck}" in tail.stalled()
    assert settled_rows(engine) == names(0, 1)
    monkeypatch.undo()
    shutil.move(stuck, tmp_path.parent / "elsewhere")
    drain(tail)
    assert tail.stalled() is None


def test_a_journal_behind_a_link_ends_and_what_it_leads_to_stays(engine, tmp_path, opened, settled):
    writer = JournalWriter(tmp_path, "w0")
    write_attempts(writer, opened, settled, range(3))
    writer.close()
    home, other = tmp_path / FOLDER / writer.name, tmp_path / "other-disk"
    home.rename(other)
    home.symlink_to(other)
    tail = tail_of(engine, tmp_path)
    drain(tail)
    assert tail.stalled() is None
    assert (settled_rows(engine), journal_faults(engine)) == (names(0, 1, 2), [])
    assert not home.is_symlink()
    assert list(other.glob("*.segment"))


@pytest.mark.parametrize("name", ["{}.bak", "copy-of-{}"])
def test_a_persons_copy_of_a_journal_is_neither_a_loss_nor_removed(
    engine, tmp_path, opened, settled, name: str
) -> None:
    """Red before: its records were told as damaged, quarantined, and the copy deleted."""
    writer = JournalWriter(tmp_path, "w0")
    write_attempts(writer, opened, settled, range(3))
    copy = tmp_path / FOLDER / name.format(writer.name)
    shutil.copytree(tmp_path / FOLDER / writer.name, copy)
    tail = tail_of(engine, tmp_path)
    drain(tail)
    write_attempts(writer, opened, settled, range(3, 5))
    writer.close()
    drain(tail)
    assert settled_rows(engine) == {f"r{number}.1" for number in range(5)}
    assert journal_faults(engine) == []
    assert [path.name for path in (tmp_path / FOLDER).iterdir()] == [copy.name]
