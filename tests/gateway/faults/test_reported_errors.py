"""Errors in the body of a 200: a failed try, told by what they say, and nothing is booked."""

import json

import pytest

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
FAILED = {"index": 0, "error": {"code": 502, "message": "idle timeout"},
          "message": {"role": "assistant", "content": ""}, "finish_reason": "error"}  # fmt: skip
USAGE = {"prompt_tokens": 20, "completion_tokens": 0, "total_tokens": 20}
PIECES = [
    ({"choices": [FAILED], "usage": USAGE}, 502, "reported_error"),
    ({"choices": [], "usage": {**USAGE, "prompt_tokens": 4241}}, 502, "reported_error"),
    ({"choices": [{**FAILED, "error": {"code": 429}}]}, 503, "overloaded"),
    ({"error": {"code": "rate_limit_exceeded", "message": "m"}}, 503, "overloaded"),
    ([{"error": {"code": 503, "status": "UNAVAILABLE"}}], 503, "overloaded"),
    ({"error": {"code": "insufficient_quota"}}, 502, "refused_credentials"),
    ({"error": {"code": "invalid_prompt", "message": "no"}}, 400, "refused"),
]
EVENTS = [
    ({"error": {"code": 429, "message": "Rate limited upstream"}}, 503, "overloaded"),
    ({"type": "error", "error": {"type": "overloaded_error"}}, 503, "overloaded"),
    ({"choices": [{**FAILED, "message": None, "delta": {"content": ""}}]}, 502, "reported_error"),
    ({"error": {"code": "server_error"}}, 502, "reported_error"),
    ({"error": {"code": 400, "message": "bad member"}}, 400, "refused"),
]


def judged(faulty, told, status: int, error: str) -> None:
    assert told.status_code == status
    assert "error" in told.json()
    (row,) = faulty.stack.settled(told)
    booked = (row["input_tokens"], row["output_tokens"], row["cost_pusd"])
    assert (row["error"], booked) == (error, (0, 0, 0))


@pytest.mark.parametrize(("said", "status", "error"), PIECES)
def test_in_one_piece(faulty, rule, answers, said, status, error) -> None:
    answer = answers.whole(json.dumps(said).encode(), HEAD)
    judged(faulty, faulty.ask("api", rule(answer=answer), max_tokens=20), status, error)


@pytest.mark.parametrize(("said", "status", "error"), EVENTS)
def test_in_the_first_event_of_a_stream(faulty, rule, answers, said, status, error) -> None:
    answer = answers.stream(b"data: " + json.dumps(said).encode() + b"\n\n")
    told = faulty.ask("api", rule(answer=answer), max_tokens=20, stream=True)
    judged(faulty, told, status, error)


@pytest.mark.parametrize(("said", "status", "error"), EVENTS[:2] + EVENTS[3:])
def test_in_one_piece_where_a_stream_was_asked_for(
    faulty, rule, answers, said, status, error
) -> None:
    answer = answers.whole(json.dumps(said).encode(), HEAD)
    told = faulty.ask("api", rule(answer=answer), max_tokens=20, stream=True)
    judged(faulty, told, status, error)


def test_a_prompt_that_a_filter_read_is_booked(faulty, rule, answers) -> None:
    """Azure bills it, and tells no usage."""
    said = b'{"error":{"code":"content_filter","message":"filtered"}}'
    told = faulty.ask("api", rule(answer=answers.whole(said, HEAD)), max_tokens=20)
    (row,) = faulty.stack.settled(told)
    assert (told.status_code, row["error"], row["output_tokens"]) == (400, "refused", 0)
    assert row["input_tokens"] > 0 < row["cost_pusd"]


def test_a_wait_inside_is_told(faulty, rule, answers) -> None:
    said = b'{"error":{"code":429,"retry_after":7}}'
    told = faulty.ask("api", rule(answer=answers.whole(said, HEAD)), max_tokens=20)
    assert (told.status_code, told.headers["retry-after"]) == (503, "7")
    faulty.stack.settled(told)


@pytest.mark.parametrize(("said", "status", "error"), EVENTS)
def test_behind_words_what_came_is_booked(faulty, rule, answers, said, status, error) -> None:
    """The control: it had begun to work, and a client has seen it."""
    words = b"data: {%b}\n\n" % (answers.CHOICE % "so").encode()
    answer = answers.stream(words + b"data: " + json.dumps(said).encode() + b"\n\n")
    told = faulty.ask("api", rule(answer=answer), max_tokens=20, stream=True)
    (row,) = faulty.stack.settled(told)
    assert (row["status"], row["error"]) == ("upstream_error", "upstream_broken")
    assert row["output_tokens"] > 0 < row["cost_pusd"]


WORKED = {"prompt_tokens": 20, "completion_tokens": 20, "total_tokens": 40}


def failed_with_work(answers, *, stream: bool) -> bytes:
    said = json.dumps({"error": {"code": "server_error"}, "usage": WORKED}).encode()
    return answers.stream(b"data: " + said + b"\n\n") if stream else answers.whole(said, HEAD)


@pytest.mark.parametrize("stream", [True, False])
def test_two_targets_that_charge_are_two_rows(faulty, rule, answers, stream) -> None:
    """The first fails behind its work; the second answers, and is paid beside it."""
    answer = failed_with_work(answers, stream=stream)
    told = faulty.ask("pair", rule(answer=answer), max_tokens=20, stream=stream)
    assert told.status_code == 200
    rows = faulty.stack.settled(told, 2)
    assert [row["target"] for row in rows] == ["alpha/m", "beta/m"]
    assert [row["status"] for row in rows] == ["upstream_error", "finished"]
    assert (rows[0]["input_tokens"], rows[0]["output_tokens"]) == (20, 20)
    assert all(0 < row["cost_pusd"] <= row["bound_pusd"] for row in rows)


@pytest.mark.parametrize("stream", [True, False])
def test_what_the_first_target_charged_is_no_room_for_the_second(
    faulty, faulty_with, rule, answers, stream
) -> None:
    """A hard budget with room for one of them, or for the other."""
    answer = failed_with_work(answers, stream=stream)
    asked = {"max_tokens": 20, "stream": stream}
    rows = faulty.stack.settled(faulty.ask("pair", rule(answer=answer), **asked), 2)
    most = max(row["bound_pusd"] for row in rows) + rows[0]["cost_pusd"] // 2
    tight = {"scope": "team:search", "usd": most / 1e12, "period": "day", "hard": True}
    host = faulty_with(budgets=[tight])
    told = host.ask("pair", rule(answer=answer), **asked)
    assert told.status_code == 502, "the first one's failure, which cost something"
    (row,) = host.stack.settled(told)
    assert (row["target"], row["output_tokens"]) == ("alpha/m", 20)
    assert 0 < row["cost_pusd"] <= most
