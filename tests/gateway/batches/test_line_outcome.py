"""What becomes of a line: its answer, another try, or waiting as if nothing had been tried."""

import json

import pytest

from gateway.batches.line_outcome import (
    MOST_FAILURES,
    ConnectionLost,
    LineAnswer,
    LineDeferred,
    LineDone,
    LineRetry,
    judge_outcome,
)
from ledger.batches.lines import LineClaim


def claim(failures: int = 0) -> LineClaim:
    return LineClaim("batch_1", 3, "c", "own", b"{}", failures + 1, failures, "/v1/x", "k", 10**9)


def answer(status: int, code: str | None = None, **given) -> LineAnswer:
    body = {"error": {"code": code}} if code or status != 200 else {"id": "x"}
    return LineAnswer(status, "r", json.dumps(body).encode(), **given)


@pytest.mark.parametrize(("status", "ok"), [(200, True), (400, False), (401, False), (403, False)])
def test_an_answer_that_stays_is_the_lines_answer(status: int, ok: bool) -> None:
    verdict = judge_outcome(claim(), answer(status))
    assert isinstance(verdict, LineDone)
    assert verdict.ok is ok
    assert json.loads(verdict.line)["response"]["status_code"] == status


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_passes_is_tried_again_later_and_later(status: int) -> None:
    pauses = [judge_outcome(claim(n), answer(status)).after_s for n in range(MOST_FAILURES - 1)]
    assert pauses == sorted(pauses)
    assert pauses[-1] > pauses[0] > 0
    last = judge_outcome(claim(MOST_FAILURES - 1), answer(status))
    assert isinstance(last, LineDone)
    assert json.loads(last.line)["response"]["status_code"] == status


@pytest.mark.parametrize("code", ["no_idle_engine", "unavailable"])
def test_what_was_not_tried_waits_and_never_counts(code: str) -> None:
    assert judge_outcome(claim(MOST_FAILURES), answer(503, code)) == LineDeferred()
    assert judge_outcome(claim(MOST_FAILURES), ConnectionLost(sent=False)) == LineDeferred()


@pytest.mark.parametrize(
    ("status", "fault", "waits"),
    [
        (503, "capacity", True),
        (503, "upstream", False),
        (503, None, False),
        (429, "capacity", False),  # of a stage without a feasible target
    ],
)
def test_a_message_that_was_not_tried_is_told_by_whose_fault_it_is(status, fault, waits) -> None:
    body = b'{"type":"error","error":{"type":"api_error","message":"no"},"request_id":"r"}'
    told = LineAnswer(status, "r", body, fault=fault)
    assert isinstance(judge_outcome(claim(MOST_FAILURES), told), LineDeferred) is waits


def test_an_overload_here_counts_as_a_try() -> None:
    told = answer(503, "overloaded", fault="capacity")
    assert isinstance(judge_outcome(claim(), told), LineRetry)


def test_what_made_room_is_tried_again_and_does_not_count() -> None:
    assert judge_outcome(claim(MOST_FAILURES), answer(503, "made_room")) == LineRetry(
        1.0, failed=False
    )


def test_a_budget_is_not_asked_twice() -> None:
    assert isinstance(judge_outcome(claim(), answer(429, "budget_exceeded", retry=False)), LineDone)


def test_a_broken_try_is_unknown_and_tried_again() -> None:
    assert judge_outcome(claim(), ConnectionLost(sent=True)) == LineRetry(2.0, failed=True)
    last = judge_outcome(claim(MOST_FAILURES - 1), ConnectionLost(sent=True))
    assert isinstance(last, LineDone)
    assert json.loads(last.line)["error"]["code"] == "no_answer"


def test_what_is_no_json_is_no_answer() -> None:
    told = json.loads(judge_outcome(claim(), LineAnswer(200, "r", b"<html>")).line)
    assert (told["response"], told["error"]["code"]) == (None, "no_answer")
    assert isinstance(judge_outcome(claim(), LineAnswer(503, "r", b"<html>")), LineRetry)


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"x": NaN, "text": "hi"}', {"x": None, "text": "hi"}),
        (b'{"x": -Infinity,\n"text": "hi"}', {"x": None, "text": "hi"}),
        (b'{"text": "a\\ud800b"}', {"text": "a\ufffdb"}),
    ],
)
def test_what_only_lenient_readers_read_is_an_answer_all_the_same(body: bytes, told: dict) -> None:
    """Red before: an answer that was paid for was told as none."""
    verdict = judge_outcome(claim(), LineAnswer(200, "r", body))
    assert verdict.ok
    assert b"\n" not in verdict.line.rstrip()
    assert json.loads(verdict.line)["response"]["body"] == told
