"""Files are seen whole and by their team; what is due or abandoned goes, and nothing else."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from ledger.batches.files import ABANDONED_US, FileRecord, FileStore

RECORD = FileRecord("file-1", "search", "k", "batch", "in.jsonl", created_us=10, expires_us=1000)


@pytest.fixture
def files(engine) -> FileStore:
    return FileStore(engine)


def kept(files: FileStore, number: int, **changes) -> FileRecord:
    record = replace(RECORD, id=f"file-{number}", **changes)
    files.create(record)
    files.append(record.id, 0, b"ab")
    files.append(record.id, 1, b"\x00c")
    whole = replace(record, bytes=4, status="processed")
    assert files.finish(whole)
    return whole


def test_a_file_is_seen_once_it_is_whole(files):
    files.create(RECORD)
    files.append("file-1", 0, b"ab")
    assert files.find("file-1", "search") is None
    assert files.list_files("search", purpose=None, after=None, limit=9, newest_first=True) == []
    whole = replace(RECORD, bytes=2, filename="b", status="processed")
    assert files.finish(whole)
    assert files.find("file-1", "search") == whole
    assert files.find("file-1", "other") is None


def test_content_comes_back_chunk_by_chunk(files):
    kept(files, 1)
    assert list(files.chunks("file-1")) == [b"ab", b"\x00c"]
    assert files.chunk("file-1", 2) is None


def test_pages_go_both_ways(files):
    records = [kept(files, number, purpose="ab"[number % 2]) for number in range(1, 6)]
    kept(files, 7, team_id="other")
    newest = files.list_files("search", purpose=None, after=None, limit=2, newest_first=True)
    assert newest == [records[4], records[3]]
    rest = files.list_files("search", purpose=None, after=newest[-1].id, limit=9, newest_first=True)
    assert rest == [records[2], records[1], records[0]]
    assert files.list_files(
        "search", purpose=None, after="file-3", limit=9, newest_first=False
    ) == [
        records[3],
        records[4],
    ]
    assert len(files.list_files("search", purpose="a", after=None, limit=9, newest_first=True)) == 2
    assert files.stored_bytes("search") == 20
    assert files.stored_bytes("nobody") == 0


def test_sweeping_takes_what_is_due_and_what_nobody_writes(files):
    kept(files, 1)
    kept(files, 2, expires_us=10**12)
    files.create(replace(RECORD, id="file-3", expires_us=10**12))
    assert files.sweep(999) == 0
    assert files.sweep(1000) == 1
    assert files.find("file-1", "search") is None
    assert files.chunk("file-1", 0) is None
    assert files.sweep(10 + ABANDONED_US) == 1
    assert files.find("file-2", "search") is not None
    assert not files.finish(replace(RECORD, id="file-3", bytes=1))


def test_what_is_still_arriving_counts(files):
    """Many uploads at once get no more room than one after the other."""
    for number in (1, 2):
        files.create(replace(RECORD, id=f"file-{number}"))
    assert files.append("file-1", 0, b"abc", team_limit_bytes=5)
    assert files.stored_bytes("search") == 3
    assert not files.append("file-2", 0, b"abc", team_limit_bytes=5)
    assert files.chunk("file-2", 0) is None
    assert files.stored_bytes("search") == 3
    assert files.append("file-2", 0, b"ab", team_limit_bytes=5)
    assert files.finish(replace(RECORD, bytes=3))
    assert files.stored_bytes("search") == 5


def test_uploads_at_the_same_time_share_what_is_left(files):
    for number in range(8):
        files.create(replace(RECORD, id=f"file-{number}"))

    def append(number: int) -> bool:
        return files.append(f"file-{number}", 0, b"abc", team_limit_bytes=9)

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(append, range(8))) == 3
