"""Validating: lines become rows, or faults an end; what is interrupted begins again."""

import json

import pytest

from gateway.batches.batch_validator import ADDED, FAULTS, BatchValidator, LeaseLost
from ledger.batches.files import FileRecord, FileStore
from ledger.batches.lines import LineStore
from ledger.batches.store import BatchRecord, BatchStore
from ledger.database import make_engine

URL = "/v1/chat/completions"
RECORD = BatchRecord("batch_1", "search", "k", URL, "24h", "file-1", 5, 10**18)


def text(custom_id: str, **body) -> bytes:
    line = {"custom_id": custom_id, "method": "POST", "url": URL}
    return json.dumps({**line, "body": {"model": "own", **body}}).encode()


class Desk:
    """One batch in a database, and everything to validate it with."""

    def __init__(self, url: str) -> None:
        engine = make_engine(url)
        self.batches, self.files = BatchStore(engine), FileStore(engine)
        self.lines = LineStore(engine, "me")
        self.held = 0

    def put(self, content: bytes, chunk: int = 1000) -> None:
        self.batches.create(RECORD)
        record = FileRecord("file-1", "search", "k", "batch", "a", 1, 10**18, len(content))
        self.files.create(record)
        for number, start in enumerate(range(0, len(content), chunk)):
            self.files.append("file-1", number, content[start : start + chunk])
        assert self.files.finish(record)

    def run(self, hold=None, **limits: int) -> BatchRecord:
        def held() -> None:
            self.held += 1

        settings = {"lines_limit": 10_000, "line_bytes": 5000, **limits}
        assert self.batches.lease("batch_1", "me", now_us=10, until_us=20)
        BatchValidator(self.batches, self.lines, self.files, **settings).run(
            RECORD, "me", known={"own"}.__contains__, hold=hold or held, now_us=lambda: 7
        )
        return self.batches.find("batch_1", "search")

    def claimed(self) -> list[str]:
        claims = self.lines.claim("own", 10_000, now_us=10, until_us=20)
        return [claim.custom_id for claim in claims]


@pytest.fixture
def desk(ledger_url) -> Desk:
    return Desk(ledger_url)


@pytest.mark.parametrize("chunk", [17, 10**6])
def test_lines_are_found_across_chunks(desk, chunk) -> None:
    desk.put(b"\n".join([text("a"), b"", text("b"), text("c")]) + b"\r\n", chunk)
    found = desk.run()
    assert (found.status, found.total, found.in_progress_us) == ("in_progress", 3, 7)
    assert desk.claimed() == ["a", "b", "c"]


@pytest.mark.parametrize("chunk", [1, 10**6])
def test_a_byte_order_mark_is_no_part_of_the_first_line(desk, chunk) -> None:
    """Some editors write one."""
    mark = b"\xef\xbb\xbf"
    desk.put(mark + text("a") + b"\n" + text("b"), chunk)
    assert desk.run().total == 2
    assert desk.claimed() == ["a", "b"]


def test_many_lines_go_in_by_parts_and_the_lease_is_kept(desk) -> None:
    desk.put(b"\n".join(text(f"c{n}") for n in range(3 * ADDED)), 10**6)
    assert desk.run().total == 3 * ADDED
    assert desk.held >= 3
    assert len(desk.claimed()) == 3 * ADDED


def test_what_was_interrupted_begins_again(desk) -> None:
    desk.put(b"\n".join(text(f"c{n}") for n in range(2 * ADDED)), 10**6)

    def lost() -> None:
        desk.held += 1
        if desk.held == 2:
            raise LeaseLost

    with pytest.raises(LeaseLost):
        desk.run(hold=lost)
    assert desk.run().total == 2 * ADDED
    assert len(desk.claimed()) == 2 * ADDED


def test_faults_end_it_and_leave_no_line(desk) -> None:
    good = [text(f"c{n}") for n in range(ADDED)]
    desk.put(b"\n".join([*good, *[b"{"] * (FAULTS + 50)]), 10**6)
    found = desk.run()
    assert (found.status, found.failed_us, found.total) == ("failed", 7, 0)
    assert len(found.errors) == FAULTS
    assert found.errors[0]["line"] == ADDED + 1
    assert desk.lines.models() == []


@pytest.mark.parametrize(
    ("content", "code"), [(b"", "empty_file"), (b"\n \n", "empty_file"), (None, "file_not_found")]
)
def test_a_file_without_requests(desk, content, code) -> None:
    if content is None:
        desk.batches.create(RECORD)
    else:
        desk.put(content)
    assert desk.run().errors[0]["code"] == code


@pytest.mark.parametrize("when", [1, 3])
def test_a_file_deleted_meanwhile_fails_its_batch_and_never_cuts_it(desk, when) -> None:
    """The cut falls within a line: neither a part of the lines nor half a line is read."""
    desk.put(b"\n".join(text(f"c{n}") for n in range(5 * ADDED)), 30_001)

    def hold() -> None:
        desk.held += 1
        if desk.held == when:
            desk.files.drop("file-1")

    found = desk.run(hold=hold)
    assert (found.status, found.total) == ("failed", 0)
    assert [(error["code"], error["line"]) for error in found.errors] == [("file_not_found", None)]
    assert desk.lines.models() == []


def test_limits_of_lines(desk) -> None:
    desk.put(b"\n".join([text("a"), text("b"), text("c")]))
    (error,) = desk.run(lines_limit=2).errors
    assert (error["code"], error["line"]) == ("too_many_requests", 3)


@pytest.mark.parametrize("chunk", [1500, 10**6])
def test_a_long_line_is_a_fault_and_the_next_is_read(desk, chunk) -> None:
    desk.put(b"\n".join([text("a", x="y" * 9000), text("b"), text("c", x="y" * 9000)]), chunk)
    told = [(error["code"], error["line"]) for error in desk.run().errors]
    assert told == [("line_too_long", 1), ("line_too_long", 3)]


def test_cancelled_meanwhile(desk) -> None:
    desk.put(text("a"))
    desk.batches.cancel("batch_1", "search", 3)
    assert desk.run().status == "cancelling"
    assert desk.lines.models() == []
