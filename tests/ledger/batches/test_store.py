"""A batch moves by who holds its lease, from the statuses it may; a team sees its own."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from ledger.batches.files import FileRecord, FileStore
from ledger.batches.lines import LineStore, NewLine
from ledger.batches.store import BatchRecord, BatchStore

RECORD = BatchRecord(
    "batch_1", "search", "k", "/v1/chat/completions", "24h", "file-1",
    created_us=10, expires_us=1000, labels={"job": "ä"},
)  # fmt: skip


@pytest.fixture
def batches(engine) -> BatchStore:
    return BatchStore(engine)


def test_a_team_sees_its_own(batches):
    batches.create(RECORD)
    assert batches.find("batch_1", "search") == RECORD
    assert batches.find("batch_1", "other") is None
    for number in range(2, 5):
        batches.create(replace(RECORD, id=f"batch_{number}"))
    assert [entry.id for entry in batches.list_batches("search", after=None, limit=2)] == [
        "batch_4", "batch_3",
    ]  # fmt: skip
    assert [entry.id for entry in batches.list_batches("search", after="batch_3", limit=9)] == [
        "batch_2", "batch_1",
    ]  # fmt: skip
    assert batches.list_batches("other", after=None, limit=9) == []


def test_a_list_leaves_errors_to_the_batch_itself(batches):
    """A hundred faults of a hundred batches are no answer that anybody waits for."""
    errors = [{"code": "invalid_url", "line": 1, "message": "m", "param": "url"}]
    batches.create(replace(RECORD, status="failed", errors=errors))
    (listed,) = batches.list_batches("search", after=None, limit=9)
    assert listed == replace(RECORD, status="failed", errors=None)
    assert batches.find("batch_1", "search").errors == errors


def test_a_team_has_so_many_batches_unfinished_and_no_more(batches):
    def create(number: int) -> bool:
        return batches.create(replace(RECORD, id=f"batch_{number}"), most=3)

    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(create, range(8))) == 3
    assert batches.create(replace(RECORD, id="batch_other", team_id="other"), most=1)
    (item, *_) = batches.list_batches("search", after=None, limit=1)
    assert batches.lease(item.id, "a", now_us=1, until_us=2)
    assert batches.move(item.id, "a", ("validating",), status="failed")
    assert create(9)
    assert not create(10)


def test_only_who_holds_the_lease_moves_it(batches):
    batches.create(RECORD)
    assert batches.lease("batch_1", "a", now_us=100, until_us=200)
    assert not batches.lease("batch_1", "b", now_us=199, until_us=300)
    assert batches.lease("batch_1", "a", now_us=150, until_us=250)
    assert not batches.move("batch_1", "b", ("validating",), status="failed")
    assert not batches.move("batch_1", "a", ("finalizing",), status="failed")
    assert batches.move("batch_1", "a", ("validating",), status="in_progress", total=3)
    assert batches.lease("batch_1", "b", now_us=250, until_us=400), "its lease is over"
    assert not batches.move("batch_1", "a", ("in_progress",), status="failed")
    found = batches.find("batch_1", "search")
    assert (found.status, found.total) == ("in_progress", 3)


def test_cancelling_is_for_what_runs(batches):
    batches.create(RECORD)
    assert not batches.cancel("batch_1", "other", 50)
    assert batches.cancel("batch_1", "search", 50)
    assert not batches.cancel("batch_1", "search", 60)
    found = batches.find("batch_1", "search")
    assert (found.status, found.cancelling_us) == ("cancelling", 50)


def test_the_end_shows_the_files_and_drops_the_lines(batches, engine):
    batches.create(RECORD)
    files, lines = FileStore(engine), LineStore(engine, "seat/a")
    lines.add("batch_1", [NewLine(1, "c", "own", b"{}")])
    files.create(FileRecord("file-9", "search", "k", "batch_output", "o", 1, 10**9))
    batches.lease("batch_1", "a", now_us=100, until_us=200)
    assert not batches.end("batch_1", "a", [("file-9", 5)], status="completed")
    assert files.find("file-9", "search") is None, "it was not finalizing"
    batches.move("batch_1", "a", ("validating",), status="finalizing")
    assert batches.end("batch_1", "a", [("file-9", 5)], status="completed", completed_us=7)
    assert files.find("file-9", "search").bytes == 5
    assert lines.models() == []
    assert batches.unfinished() == []


def test_there_is_work_while_something_is_open_or_due(batches, engine):
    assert not batches.any_due(10**6)
    batches.create(RECORD)
    assert batches.any_due(0)
    assert [item.id for item in batches.unfinished()] == ["batch_1"]
    batches.lease("batch_1", "a", now_us=100, until_us=200)
    batches.move("batch_1", "a", ("validating",), status="failed")
    assert not batches.any_due(10**6)
    FileStore(engine).create(FileRecord("file-9", "search", "k", "batch", "o", 1, 10**5))
    assert batches.any_due(10**6)
