"""Objects and lines have OpenAI's members, all of them, whatever is not known yet."""

import json

import pytest

from gateway.batches import shapes
from ledger.batches.files import FileRecord
from ledger.batches.store import BatchRecord


def test_a_file() -> None:
    record = FileRecord(
        "file-1", "t", "k", "batch", "a.jsonl", 5_900_000, 9_000_000, 7, "processed"
    )
    assert shapes.file_object(record) == {
        "id": "file-1", "object": "file", "bytes": 7, "created_at": 5, "expires_at": 9,
        "filename": "a.jsonl", "purpose": "batch", "status": "processed", "status_details": None,
    }  # fmt: skip


def test_a_batch() -> None:
    record = BatchRecord("batch_1", "t", "k", "/v1/x", "24h", "file-1", 5_000_000, 9_000_000,
                         errors=[{"code": "c"}], total=3, failed=1)  # fmt: skip
    told = shapes.batch_object(record)
    assert (told["created_at"], told["expires_at"], told["completed_at"]) == (5, 9, None)
    assert told["errors"] == {"object": "list", "data": [{"code": "c"}]}
    assert told["request_counts"] == {"total": 3, "completed": 0, "failed": 1}
    assert {"in_progress_at", "finalizing_at", "failed_at", "expired_at", "cancelling_at",
            "cancelled_at", "output_file_id", "error_file_id", "metadata", "usage",
    } <= set(told)  # fmt: skip


def test_a_page_says_where_the_next_begins() -> None:
    assert shapes.page([], more=False) == {
        "object": "list", "data": [], "first_id": None, "last_id": None, "has_more": False,
    }  # fmt: skip
    assert shapes.page([{"id": "a"}, {"id": "b"}], more=True)["last_id"] == "b"


def test_an_answer_is_one_line_with_its_numbers_untouched() -> None:
    body = b'{\n  "a": 1.10,\r\n  "b": "x\\ny  z", "c": 12345678901234567890 }'
    line = shapes.answered_line("batch_1", 4, "c", shapes.LineResponse(200, "r", body))
    assert b"\n" not in line
    assert b'"a":1.10' in line
    assert b"12345678901234567890" in line
    told = json.loads(line)
    assert (told["id"], told["custom_id"], told["error"]) == ("batch_req_1_4", "c", None)
    assert told["response"]["body"]["b"] == "x\ny  z"


def test_what_no_target_got_is_named_in_its_line() -> None:
    known = shapes.LineResponse(200, "r", b"{}")
    named = json.loads(shapes.answered_line("b", 4, "c", known._replace(ignored="a, b")))
    assert named["response"]["headers"] == {"x-breakeven-ignored": "a, b"}
    for nothing in (None, ""):
        plain = json.loads(shapes.answered_line("b", 4, "c", known._replace(ignored=nothing)))
        assert "headers" not in plain["response"]


@pytest.mark.parametrize("code", [shapes.EXPIRED, shapes.CANCELLED, shapes.NO_ANSWER])
def test_a_line_without_an_answer_says_why(code: str) -> None:
    told = json.loads(shapes.unanswered_line("batch_1", 4, "c", code=code))
    assert (told["response"], told["error"]["code"]) == (None, code)
    assert told["error"]["message"]
