"""Reading while others write: nothing twice, nothing skipped, torn tails passed over.

Of both formats: earlier versions wrote format 1.
"""

import pytest
from old_journal import OldWriter

from ledger.journals import homes
from ledger.journals.homes import has_owner, segments
from ledger.journals.journal import JournalWriter
from ledger.journals.payloads import decode_payload
from ledger.journals.reader import JournalOffset, JournalReader


@pytest.fixture(params=[OldWriter, JournalWriter], ids=["format 1", "format 2"])
def writer_of(request):
    return request.param


def only(directory):
    reader = JournalReader(directory)
    (journal,) = reader.journals()
    return reader, journal


async def test_tailing_sees_each_record_once(tmp_path, writer_of, opened):
    writer = writer_of(tmp_path, "w0", segment_bytes=3000)
    reader, journal = only(tmp_path)
    since, found = JournalOffset(), []
    for number in range(40):
        writer.append(opened(number))
        if number % 3 == 0:
            chunk = reader.read(journal, since)
            found += [frame.record for frame in chunk.frames]
            since = chunk.after
    for _ in range(40):
        chunk = reader.read(journal, since)
        found += [frame.record for frame in chunk.frames]
        since = chunk.after
    assert found == [opened(number) for number in range(40)]
    assert reader.backlog_bytes(journal, since) == 0
    writer.close()


async def test_a_torn_tail_is_never_a_record(tmp_path, writer_of, opened):
    writer = writer_of(tmp_path, "w0")
    writer.append(opened(1))
    reader, journal = only(tmp_path)
    with segments(journal)[-1].open("ab") as file:
        file.write(b"\x40\x00\x00\x00half")
    chunk = reader.read(journal, JournalOffset())
    assert [frame.record for frame in chunk.frames] == [opened(1)]
    assert reader.read(journal, chunk.after).frames == ()
    writer.close()
    assert reader.read(journal, chunk.after) == reader.read(journal, chunk.after)


async def test_a_torn_tail_in_the_middle_is_passed_over(tmp_path, writer_of, opened):
    writer = writer_of(tmp_path, "w0", segment_bytes=700)
    for number in range(6):
        writer.append(opened(number))
    writer.close()
    reader, journal = only(tmp_path)
    first = segments(journal)[0]
    with first.open("ab") as file:
        file.write(b"\x40\x00\x00\x00half")
    since, found = JournalOffset(), []
    while (chunk := reader.read(journal, since)).after != since:
        found += [frame.record for frame in chunk.frames]
        since = chunk.after
    assert found == [opened(number) for number in range(6)]


async def test_garbage_in_a_sealed_segment_is_a_fault_and_the_next_is_read(
    tmp_path, writer_of, opened
):
    writer = writer_of(tmp_path, "w0", segment_bytes=700)
    for number in range(6):
        writer.append(opened(number))
    writer.close()
    reader, journal = only(tmp_path)
    with segments(journal)[0].open("ab") as file:
        file.write(b"\xff" * 100)
    since, faults, found, told = JournalOffset(), [], [], []
    while (chunk := reader.read(journal, since)).after != since:
        faults += [frame.fault for frame in chunk.frames if frame.fault]
        found += [frame.record for frame in chunk.frames if frame.record]
        told += chunk.damages
        since = chunk.after
    assert faults == (["no frame"] if writer_of is OldWriter else [])
    assert [damage.missing for damage in told] == ([] if writer_of is OldWriter else [0])
    assert found == [opened(number) for number in range(6)]


async def test_applied_segments_go_and_the_newest_stays(tmp_path, writer_of, opened):
    writer = writer_of(tmp_path, "w0", segment_bytes=2000)
    for number in range(30):
        writer.append(opened(number))
    reader, journal = only(tmp_path)
    last = segments(journal)[-1]
    assert reader.remove_applied(journal, JournalOffset(10**6)) > 3
    assert segments(journal) == [last]
    writer.close()
    reader.remove(journal)
    assert reader.journals() == []


async def test_a_small_read_limit_only_takes_more_reads(tmp_path, writer_of, opened):
    writer = writer_of(tmp_path, "w0")
    for number in range(10):
        writer.append(opened(number))
    writer.close()
    reader, journal = only(tmp_path)
    since, found = JournalOffset(), []
    while chunk := reader.read(journal, since, limit_bytes=700):
        if chunk.after == since:
            break
        found += [frame.record for frame in chunk.frames]
        since = chunk.after
    assert found == [opened(number) for number in range(10)]


@pytest.mark.parametrize("segment_bytes", [500, 100_000])  # one record a segment; all in one
async def test_a_record_larger_than_the_read_limit_is_read_and_not_passed_over(
    tmp_path, writer_of, opened, segment_bytes
):
    """A whole frame that does not fit is no torn tail: what follows it would go with it."""
    writer = writer_of(tmp_path, "w0", segment_bytes=segment_bytes)
    records = [opened(number, decision=bytes(3000 * (number % 2))) for number in range(6)]
    for record in records:
        writer.append(record)
    writer.close()
    reader, journal = only(tmp_path)
    since, found = JournalOffset(), []
    while (chunk := reader.read(journal, since, limit_bytes=700)).after != since:
        found += [frame.record for frame in chunk.frames]
        since = chunk.after
    assert found == records


async def test_no_more_frames_are_decoded_than_were_asked_for(
    tmp_path, writer_of, opened, monkeypatch
):
    writer = writer_of(tmp_path, "w0")
    for number in range(10):
        writer.append(opened(number))
    decoded = []

    def counted(payload):
        decoded.append(payload)
        return decode_payload(payload)

    monkeypatch.setattr("ledger.journals.frames.decode_payload", counted)
    monkeypatch.setattr("ledger.journals.scan.decode_payload", counted)
    reader, journal = only(tmp_path)
    since, found = JournalOffset(), []
    while (chunk := reader.read(journal, since, most=3)).frames:
        assert chunk.more is (len(chunk.frames) == 3)
        found += [frame.record for frame in chunk.frames]
        since = chunk.after
    assert found == [opened(number) for number in range(10)]
    assert len(decoded) == 10
    writer.close()


async def test_more_is_said_where_a_journal_certainly_goes_on(tmp_path, writer_of, opened):
    writer = writer_of(tmp_path, "w0", segment_bytes=2000)
    for number in range(12):
        writer.append(opened(number))
    reader, journal = only(tmp_path)
    newest = JournalOffset(len(segments(journal)))
    assert newest.segment > 2
    assert reader.read(journal, JournalOffset()).more  # a later segment
    assert reader.read(journal, newest, limit_bytes=700).more  # a full read
    assert not reader.read(journal, newest).more
    writer.close()


async def test_the_owner_is_seen_while_it_lives(tmp_path, writer_of):
    writer = writer_of(tmp_path, "w0")
    _, journal = only(tmp_path)
    assert has_owner(journal)
    writer.close()
    assert not has_owner(journal)


async def test_a_first_segment_that_is_gone_before_it_was_read_is_told(tmp_path, opened):
    writer = JournalWriter(tmp_path, "w0", segment_bytes=3000)
    for number in range(40):
        writer.append(opened(number))
    writer.close()
    reader, journal = only(tmp_path)
    segments(journal)[0].unlink()
    chunk = reader.read(journal, JournalOffset())
    (told,) = chunk.damages
    assert (told.after, told.missing) == (0, chunk.frames[0].sequence - 1)


async def test_a_file_that_somebody_put_beside_the_segments_is_none(tmp_path, writer_of, opened):
    writer = writer_of(tmp_path, "w0")
    writer.append(opened(1))
    reader, journal = only(tmp_path)
    (path,) = segments(journal)
    for name in (f"{path.stem} (copy){path.suffix}", f"{path.stem}.old{path.suffix}"):
        path.with_name(name).write_bytes(path.read_bytes())
    chunk = reader.read(journal, JournalOffset())
    assert [frame.record for frame in chunk.frames] == [opened(1)]
    assert segments(journal) == [path]
    writer.close()


def test_a_known_journal_is_listed_without_a_read(tmp_path, opened, monkeypatch) -> None:
    """The ledger writer lists journals at each step, and a header is 4 KB of each."""
    writer = JournalWriter(tmp_path, "w0")
    writer.append(opened(1))
    reader = JournalReader(tmp_path)
    (journal,) = reader.journals()
    monkeypatch.setattr(homes, "_named_by", lambda segment: pytest.fail(f"{segment} was read"))
    assert reader.journals() == [journal]
    writer.close()
