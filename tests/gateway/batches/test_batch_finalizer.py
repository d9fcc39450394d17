"""The end of a batch: every line in one of its files, whoever had to begin again."""

import itertools
import json

import pytest

from gateway.batches.batch_finalizer import BatchFinalizer
from gateway.batches.batch_validator import LeaseLost
from ledger.batches.files import FileStore
from ledger.batches.lines import LineStore, NewLine
from ledger.batches.store import BatchRecord, BatchStore
from ledger.database import make_engine

EXPIRES_US = 1000


class Desk:
    def __init__(self, url: str) -> None:
        engine = make_engine(url)
        self.batches, self.files = BatchStore(engine), FileStore(engine)
        self.lines, self.now_us = LineStore(engine, "me"), 100
        numbers = itertools.count(1)
        self.finishing = BatchFinalizer(
            self.batches, self.lines, self.files, "me", lambda: self.now_us,
            lambda prefix: f"{prefix}{next(numbers)}", keep_us=500,
        )  # fmt: skip

    def put(self, total: int, good: int, bad: int = 0, **changes) -> None:
        record = BatchRecord(
            "batch_1", "search", "k", "/v1/x", "24h", "f", 5, EXPIRES_US, **changes
        )
        self.batches.create(record)
        self.lines.add("batch_1", [NewLine(n, f"c{n}", "own", b"{}") for n in range(1, total + 1)])
        self.batches.lease("batch_1", "me", now_us=1, until_us=10**9)
        self.batches.move("batch_1", "me", ("validating",), status="in_progress", total=total)
        for claim in self.lines.claim("own", good + bad, now_us=10, until_us=200):
            body = {"usage": {"prompt_tokens": claim.number, "completion_tokens": 1}}
            answer = json.dumps({"custom_id": claim.custom_id, "response": {"body": body}}).encode()
            self.lines.answer(claim, answer, ok=claim.number <= good)

    @property
    def found(self) -> BatchRecord:
        return self.batches.find("batch_1", "search")

    def finish(self, hold=lambda: None) -> BatchRecord:
        assert self.finishing.start_finalizing(self.found)
        assert self.found.status == "finalizing"
        self.finishing.end(self.found, hold)
        return self.found

    def ids(self, file_id: str | None) -> list[str]:
        content = b"".join(self.files.chunks(file_id or ""))
        return [json.loads(line)["custom_id"] for line in content.splitlines()]


@pytest.fixture
def desk(ledger_url) -> Desk:
    return Desk(ledger_url)


def test_a_batch_that_is_answered_completes(desk) -> None:
    desk.put(4, good=3, bad=1)
    done = desk.finish()
    assert (done.status, done.completed_us, done.expired_us) == ("completed", 100, None)
    assert (desk.ids(done.output_file_id), desk.ids(done.error_file_id)) == (
        ["c1", "c2", "c3"], ["c4"],
    )  # fmt: skip
    assert done.usage is not None
    assert (done.usage["input_tokens"], done.usage["output_tokens"]) == (1 + 2 + 3, 3)
    record = desk.files.find(done.output_file_id, "search")
    assert (record.purpose, record.expires_us) == ("batch_output", 600)
    assert desk.lines.models() == []


def test_output_may_be_kept_for_another_time(desk) -> None:
    desk.put(1, good=1, output_seconds=3600)
    record = desk.files.find(desk.finish().output_file_id, "search")
    assert record.expires_us == 100 + 3600 * 10**6


def test_what_is_not_answered_keeps_it_open(desk) -> None:
    desk.put(4, good=3)
    assert not desk.finishing.start_finalizing(desk.found)
    assert desk.found.usage is None


def test_time_is_over(desk) -> None:
    desk.put(4, good=3)
    desk.lines.claim("own", 1, now_us=100, until_us=EXPIRES_US + 50)
    desk.now_us = EXPIRES_US
    assert not desk.finishing.start_finalizing(desk.found), "a runner has a line in hand"
    desk.now_us = EXPIRES_US + 50
    done = desk.finish()
    assert (done.status, done.completed, done.failed) == ("expired", 3, 1)
    assert desk.ids(done.error_file_id) == ["c4"]


def test_it_is_cancelled(desk) -> None:
    desk.put(2, good=1)
    desk.batches.cancel("batch_1", "search", 90)
    done = desk.finish()
    assert (done.status, done.cancelled_us) == ("cancelled", 100)
    error = json.loads(b"".join(desk.files.chunks(done.error_file_id)))["error"]
    assert error["code"] == "batch_cancelled"


def test_who_dies_while_writing_leaves_nothing_that_is_seen(desk) -> None:
    desk.put(4, good=2)
    desk.now_us = EXPIRES_US
    calls = itertools.count()

    def dies() -> None:
        if next(calls) == 2:  # the lines are closed, one file is written
            raise LeaseLost

    with pytest.raises(LeaseLost):
        desk.finish(dies)
    assert (
        desk.files.list_files("search", purpose=None, after=None, limit=9, newest_first=True) == []
    )
    desk.finishing.end(desk.found, lambda: None)
    done = desk.found
    assert (done.status, done.completed, done.failed) == ("expired", 2, 2)
    assert desk.ids(done.output_file_id) == ["c1", "c2"]
    assert desk.ids(done.error_file_id) == ["c3", "c4"]
    seen = desk.files.list_files("search", purpose=None, after=None, limit=9, newest_first=True)
    assert len(seen) == 2


def test_who_lost_the_lease_ends_nothing(desk) -> None:
    desk.put(1, good=1)
    assert desk.finishing.start_finalizing(desk.found)
    desk.batches.lease("batch_1", "other", now_us=10**9, until_us=10**10)
    desk.finishing.end(desk.found, lambda: None)
    assert desk.found.status == "finalizing"
