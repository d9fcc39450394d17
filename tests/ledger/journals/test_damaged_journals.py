"""A bad disk against real journals: what is intact is read, and no record is lost unseen.

A sample runs here; `JOURNAL_DAMAGE=all` plays every bit, block and byte (`make journals`).
"""

import os

import pytest
from journal_damage import (
    KINDS,
    RECORDS,
    chosen,
    faults,
    frame_spans,
    only_segment,
    read_on,
    read_to_its_end,
    short_record,
)
from old_journal import OldWriter

from ledger.journals.journal import JournalWriter
from ledger.journals.layout import encode_head
from ledger.journals.mark import WRITTEN
from ledger.journals.reader import JournalOffset, JournalReader

SAMPLE = {"flips": 120, "blocks": 60, "cuts": 120}
WANTED = [short_record(number) for number in range(RECORDS)]


def let_go(writer) -> None:
    """As the death of its process does: no end frame, no flush, and the lock is free."""
    writer._reserve.close()
    writer._mark.close()
    for file in (writer._file, writer._holder):
        os.close(file)


def ended(directory, end):
    writer = JournalWriter(directory, "w0")
    for record in WANTED:
        writer.append(record)
    end(writer)
    reader = JournalReader(directory)
    return reader, reader.journals()[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("end", [JournalWriter.close, let_go], ids=["closed", "killed"])
def test_with_the_host_down(tmp_path, kind, end) -> None:
    reader, journal = ended(tmp_path, end)
    path, spans = only_segment(journal), frame_spans(reader, journal)
    data = path.read_bytes()
    assert read_to_its_end(reader, journal).told == []
    wrong, count = [], 0
    for case in chosen(kind, data, SAMPLE[kind], seed=count):
        path.write_bytes(case.data)
        wrong += faults(case, spans, WANTED, read_to_its_end(reader, journal), data)
        count += 1
        if len(wrong) > 20:
            break
    assert count
    assert wrong == []


@pytest.mark.parametrize("limits", [{"limit_bytes": 700}, {"most": 4}], ids=["bytes", "records"])
def test_what_lies_across_the_ends_of_reads(tmp_path, limits) -> None:
    """A frame that was moved is found behind the end of the read that lacks its number."""
    reader, journal = ended(tmp_path, JournalWriter.close)
    path, spans = only_segment(journal), frame_spans(reader, journal)
    data, wrong = path.read_bytes(), []
    for kind, most in (("flips", 40), ("blocks", 1_000), ("cuts", 40)):
        for case in chosen(kind, data, most, seed=2):
            path.write_bytes(case.data)
            wrong += faults(case, spans, WANTED, read_to_its_end(reader, journal, **limits), data)
    assert wrong == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("applied", [0, 20])
def test_with_the_host_alive(tmp_path, kind, applied) -> None:
    """Damaged while the worker lives and after `applied` records were read; then it writes on."""
    folder = tmp_path / "0"
    writer = JournalWriter(folder, "w0")
    for record in WANTED:
        writer.append(record)
    reader = JournalReader(folder)
    (journal,) = reader.journals()
    spans, path = frame_spans(reader, journal), only_segment(journal)
    data = path.read_bytes()
    since = JournalOffset()
    if applied:
        since = reader.read(journal, since, most=applied).after
    more, wrong = [], []
    for number, case in enumerate(chosen(kind, data, SAMPLE[kind] // 4, seed=applied)):
        path.write_bytes(case.data)
        records, told, here = read_on(reader, journal, since)
        later = short_record(RECORDS + number)
        writer.append(later)
        found = read_on(reader, journal, here)
        more.append(later)
        both = found._replace(records=records + found.records, told=told + found.told)
        wrong += faults(case, spans, [*WANTED[applied:], later], both)
        if len(wrong) > 20:
            break
        path.write_bytes(data)
        writer._sequence = RECORDS  # the next case follows the same records
        for written in (RECORDS - 1, RECORDS):
            writer._mark.memory[WRITTEN[written & 1]] = encode_head(b"", written, 0)
    assert more
    assert wrong == []
    let_go(writer)


def test_control_format_1_loses_records_unseen(tmp_path) -> None:
    writer = OldWriter(tmp_path, "w0")
    for record in WANTED:
        writer.append(record)
    path = writer.segment
    writer.close()
    reader = JournalReader(tmp_path)
    (journal,) = reader.journals()
    spans, data = frame_spans(reader, journal), path.read_bytes()
    unseen = []
    for kind in KINDS:
        for case in chosen(kind, data, 100, seed=1):
            path.write_bytes(case.data)
            wrong = faults(case, spans, WANTED, read_to_its_end(reader, journal))
            unseen += [fault for fault in wrong if fault.endswith("nothing told")]
    assert len(unseen) > 20
