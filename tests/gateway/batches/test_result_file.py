"""Results are counted once for each attempt, and answers of none apart."""

from typing import Any

import msgspec

from gateway.batches.line_settlement import LineResult
from gateway.batches.result_file import ResultFile

OURS = {"a", "b"}


def result(name: str, **members: Any) -> LineResult:
    told = {"response": {"status_code": 200, "body": {"id": "x"}}} | members
    return msgspec.json.decode(msgspec.json.encode({"custom_id": name, **told}), type=LineResult)


def test_an_answer_counts_once_and_what_is_of_no_attempt_is_odd() -> None:
    found = ResultFile()
    first, other, foreign = result("a"), result("b"), result("z")
    assert found.add_answer(first, OURS) is first
    assert found.add_answer(result("a"), OURS) is None
    assert found.add_answer(other, OURS) is other
    assert found.add_answer(foreign, OURS) is None
    assert found.add_answer(None, OURS) is None
    assert (found.known, found.done, found.odd) == (OURS, 2, 2)
    assert not found.has_failures


def test_a_failure_counts_where_no_answer_does() -> None:
    found = ResultFile()
    refused = {"response": {"status_code": 400, "body": {"error": {}}}}
    failures = [result("a", **refused), result("b", response=None, error={"code": "x"})]
    silent = result("b", response=None, error=None)
    told = [silent, *failures, result("z", **refused), result("a")]
    assert [item for item in told if found.add_answer(item, OURS)] == told[-1:]
    assert (found.done, found.odd, found.has_failures) == (1, 0, True)
    assert [item for item in (*told, *told, None) if found.add_failure(item, OURS)] == [failures[1]]
    assert (found.known, found.done) == (OURS, 1)
