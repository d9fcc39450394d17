"""What copies of damaged segments still say, in both formats."""

from journal_damage import encode_frame, only_segment, short_record
from old_journal import OldWriter

from ledger.journals.homes import copies, keep_copy, list_journals
from ledger.journals.journal import JournalWriter
from ledger.journals.layout import HEADER_BYTES, stamp_of
from ledger.journals.payloads import encode_payload
from ledger.journals.remains import read_remains, records_of_bytes

RECORDS = [short_record(number) for number in range(5)]


def kept(directory, writer, *places):
    for record in RECORDS:
        writer.append(record)
    writer.close()
    (journal,) = list_journals(directory)
    path = only_segment(journal)
    data = bytearray(path.read_bytes())
    for place in places:
        data[place] ^= 1
    path.write_bytes(data)
    keep_copy(directory, journal, path)
    (copy,) = copies(directory)
    return read_remains(copy)


def test_one_wrong_bit_is_put_right_and_more_are_counted(tmp_path) -> None:
    first = len(encode_frame(encode_payload(RECORDS[0]), 1, 0))
    second = HEADER_BYTES + first
    found = kept(
        tmp_path, JournalWriter(tmp_path, "w0"), HEADER_BYTES + 45, second + 40, second + 60
    )
    assert list(found.intact) == RECORDS[2:]
    assert list(found.repaired) == RECORDS[:1]
    assert found.lost_bytes == len(encode_frame(encode_payload(RECORDS[1]), 1, 0))
    assert (found.journal.startswith("w0-"), found.segment) == (True, 1)


def test_format_1_says_what_is_intact(tmp_path) -> None:
    found = kept(tmp_path, OldWriter(tmp_path, "w0"), 20)
    assert list(found.intact) == RECORDS[1:]
    assert found.lost_bytes > 0


def test_quarantined_bytes_are_a_record_or_damaged_frames() -> None:
    payload = encode_payload(RECORDS[3])
    assert list(records_of_bytes(payload, "w0-a", 2, 0)) == [RECORDS[3]]
    frame = bytearray(encode_frame(payload, 9, stamp_of("w0-a", 2)))
    frame[5] ^= 1
    assert list(records_of_bytes(bytes(frame), "w0-a", 2, 77)) == [RECORDS[3]]
    assert list(records_of_bytes(b"\x00garbage", "w0-a", 2, 0)) == []


def test_without_damage_there_is_nothing(tmp_path) -> None:
    assert copies(tmp_path) == []
