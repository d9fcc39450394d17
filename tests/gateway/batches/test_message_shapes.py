"""Batches as Anthropic's clients read them, of every state that a batch can end in."""

import json
from dataclasses import replace
from typing import Any

import pytest

from gateway.batches.inputlines import InputLines
from gateway.batches.message_shapes import (
    input_lines,
    message_batch,
    read_creation,
    result_line,
    unread_line,
)
from gateway.batches.shapes import (
    CANCELLED,
    EXPIRED,
    NO_ANSWER,
    LineResponse,
    answered_line,
    unanswered_line,
)
from gateway.errors import RequestError
from ledger.batches.store import OPEN, BatchRecord

MADE = BatchRecord(
    "msgbatch_1", "t", "k", "/v1/messages", "24h", "file-1", created_us=1_000_000,
    expires_us=86_401_000_000, total=5,
)  # fmt: skip


def result(line: bytes) -> dict[str, Any]:
    told = json.loads(result_line(line))
    assert told["custom_id"] == "a"
    return told["result"]


SITE = "https://gateway.example:8443"


@pytest.mark.parametrize(
    ("changes", "state", "counts"),
    [
        ({}, "in_progress", (5, 0, 0, 0, 0)),
        ({"completed": 2, "status": "in_progress"}, "in_progress", (5, 0, 0, 0, 0)),
        ({"status": "cancelling", "cancelling_us": 5}, "canceling", (5, 0, 0, 0, 0)),
        ({"status": "finalizing", "cancelling_us": 5}, "canceling", (5, 0, 0, 0, 0)),
        ({"completed": 3, "failed": 2, "status": "completed"}, "ended", (0, 3, 2, 0, 0)),
        ({"completed": 1, "failed": 4, "unanswered": 3, "status": "expired"}, "ended",
         (0, 1, 1, 0, 3)),
        ({"completed": 1, "failed": 4, "unanswered": 4, "status": "cancelled", "cancelling_us": 5},
         "ended", (0, 1, 0, 4, 0)),
        ({"status": "cancelled", "cancelling_us": 5}, "ended", (0, 0, 0, 5, 0)),
        ({"status": "failed"}, "ended", (0, 0, 5, 0, 0)),
    ],
)  # fmt: skip
def test_every_request_is_counted_once(changes, state, counts) -> None:
    ended = {} if state != "ended" else {f"{changes['status']}_us": 90_000_000}
    record = replace(MADE, **changes, **ended)
    told = message_batch(record, SITE)
    assert told["processing_status"] == state
    names = ("processing", "succeeded", "errored", "canceled", "expired")
    assert tuple(told["request_counts"][name] for name in names) == counts
    assert sum(counts) == record.total
    assert told["created_at"] == "1970-01-01T00:00:01Z"
    assert told["ended_at"] == (None if record.status in OPEN else "1970-01-01T00:01:30Z")
    url = f"{SITE}/v1/messages/batches/{record.id}/results"
    assert told["results_url"] == (None if record.status in OPEN else url)


def test_a_lines_answer_is_one_of_four_results() -> None:
    message, error = {"type": "message"}, {"type": "error", "error": {"type": "x"}}
    answered = [
        answered_line("b", 1, "a", LineResponse(status, "r", json.dumps(body).encode()))
        for status, body in ((200, message), (429, error))
    ]
    assert result(answered[0]) == {"type": "succeeded", "message": message}
    named = answered_line("b", 1, "a", LineResponse(200, "r", b"{}", "metadata"))
    assert result(named)["headers"] == {"x-breakeven-ignored": "metadata"}
    assert result(answered[1]) == {"type": "errored", "error": error}
    lines = [unanswered_line("b", 1, "a", code=code) for code in (CANCELLED, EXPIRED, NO_ANSWER)]
    assert [result(line)["type"] for line in lines] == ["canceled", "expired", "errored"]


def test_a_batch_that_ended_before_it_was_read_tells_why_for_each_request() -> None:
    line = b'{"custom_id": "a"}'
    faults = [{"message": "The model is gone."}]
    failed = json.loads(unread_line(line, replace(MADE, status="failed", errors=faults)))
    assert failed["result"]["error"]["error"]["message"] == "The model is gone."
    cancelled = replace(MADE, status="cancelled", cancelling_us=5)
    assert json.loads(unread_line(line, cancelled))["result"] == {"type": "canceled"}


@pytest.mark.parametrize("text", [b"", b"[]", b"{", b'{"requests": []}', b'{"requests": [5]}'])
def test_what_is_no_batch_is_refused(text: bytes) -> None:
    with pytest.raises(RequestError):
        read_creation(text)


@pytest.mark.parametrize(
    "text",
    [b'{"requests": [], "odd": 1}', b'{"requests": [{"custom_id": "a", "params": {}, "odd": 1}]}'],
)
def test_a_member_that_nobody_reads_is_refused_by_its_name(text: bytes) -> None:
    with pytest.raises(RequestError, match="`odd`"):
        read_creation(text)


def test_a_request_is_a_line_whatever_its_white_space() -> None:
    text = b'{"requests": [{"custom_id": "a", "params": {"model":\n"m",\n"x": "\\n"}}]}'
    (line,) = input_lines(
        read_creation(text), InputLines("/v1/messages", "m".__eq__), line_bytes=200
    )
    assert line.count(b"\n") == 1
    assert json.loads(line)["body"] == {"model": "m", "x": "\n"}
    with pytest.raises(RequestError) as refused:
        list(input_lines(read_creation(text), InputLines("/v1/messages", "m".__eq__), line_bytes=9))
    assert refused.value.param == "requests[0]"
