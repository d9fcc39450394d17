"""Anthropic's SDK, and OpenAI's with the Responses API, unchanged: what they saw and was booked."""

import json

import httpx
import pytest

APPLIED_LIMIT_S = 60
LABEL = "[simulated]:"  # how every answer of the stand-in begins
BOOKED = ("input_tokens", "cached_tokens", "output_tokens")


def row_of(gateway, request_id: str) -> dict:
    query = "SELECT * FROM attempts WHERE request_id = :id AND settled_us IS NOT NULL"
    (row,) = gateway.until(lambda: gateway.rows(query, id=request_id), APPLIED_LIMIT_S)
    return row


def is_stopped(gateway, seen: dict) -> None:
    """An answer that was left is booked as that, and the engine does not go on."""
    row = row_of(gateway, seen["request_id"])
    assert row["status"] == "client_gone"
    assert 0 < row["output_tokens"] < 4000
    served = httpx.get(f"{gateway.engine_url}/_journal", trust_env=False).text.splitlines()
    entries = [json.loads(line) for line in served if row["attempt_id"] in line]
    assert [entry["status"] for entry in entries] == ["aborted"]
    assert entries[0]["completion_tokens"] < 4000


def is_refused_once(gateway, team: str, seen: dict) -> None:
    query = "SELECT request_id FROM refusals WHERE team_id = :team"
    rows = gateway.until(lambda: gateway.rows(query, team=team), APPLIED_LIMIT_S)
    assert [row["request_id"] for row in rows] == [seen["request_id"]]


# ---------------------------------------------------------------- Anthropic's Messages


def test_no_check_of_messages_broke(messages_told: dict) -> None:
    broken = {name: seen for name, seen in messages_told.items() if "failed" in str(seen)}
    assert broken == {}


def test_messages(gateway, messages_told: dict) -> None:
    whole, streamed = messages_told["whole"], messages_told["streamed"]
    assert (whole["type"], whole["role"], whole["stop"]) == ("message", "assistant", "max_tokens")
    assert whole["text"].startswith(LABEL)
    assert streamed["text"] == "".join(streamed["texts"]) == whole["text"]
    assert len(streamed["texts"]) > 1
    for seen in (whole, streamed):
        row = row_of(gateway, seen["request_id"])
        assert {name: row[name] for name in BOOKED} == seen["usage"]
        assert (row["backend"], row["output_tokens"]) == ("own", 12)
    spilled = messages_told["spilled"]
    assert spilled["text"].startswith(LABEL)
    row = row_of(gateway, spilled["request_id"])
    assert row["backend"] == "api"
    assert {name: row[name] for name in BOOKED} == spilled["usage"]


@pytest.mark.parametrize("check", ["tools", "tools_streamed"])
def test_messages_call_tools(messages_told: dict, check: str) -> None:
    seen = messages_told[check]
    (call,) = seen["calls"]
    assert (seen["stop"], call["name"]) == ("tool_use", "weather")
    assert call["input"].keys() == {"town", "days"}
    assert seen.get("parts", 2) > 1
    assert messages_told["results"]["text"].startswith(LABEL)


def test_messages_count_and_take_bearer_tokens(messages_told: dict) -> None:
    assert 0 < messages_told["counted"]["tokens"] < 100
    assert messages_told["bearer"]["text"].startswith(LABEL)
    assert len(set(messages_told["asynchronous"]["texts"])) == 1


def test_messages_are_used_by_helpers_raw_and_in_tasks(messages_told: dict) -> None:
    assert messages_told["counted_with_tools"]["tokens"] > messages_told["counted"]["tokens"]
    raw = messages_told["raw"]
    assert raw["request_id"].startswith("req_")
    assert (raw["first"], raw["last"]) == (
        "event: message_start",
        'data: {"type":"message_stop"}',
    )
    assert messages_told["listed"]["one"] == messages_told["listed"]["ids"][0] == "chat"
    assert {"text", "content_block_stop", "message_stop"} <= set(messages_told["folded"]["kinds"])
    assert messages_told["tool_runner"] == {"messages": 2, "calls": 1}
    assert messages_told["cancelled"]["ended"] == ["CancelledError"] * 3
    assert messages_told["cancelled"]["after"].startswith(LABEL)


def test_a_batch_of_messages_is_run_and_deleted(messages_told: dict) -> None:
    told = messages_told["batched"]
    assert told["counts"] == {
        "processing": 0, "succeeded": 1, "errored": 1, "canceled": 0, "expired": 0,
    }  # fmt: skip
    assert told["results"] == {"good": "succeeded", "bad": "errored"}
    assert told["good"]["type"] == "message"
    assert (told["bad"], told["listed"], told["deleted"]) == ("invalid_request_error", True, True)


@pytest.mark.parametrize(
    ("check", "raised", "status", "kind", "said"),
    [
        ("bad_key", "AuthenticationError", 401, "authentication_error", "key"),
        ("bad_request", "BadRequestError", 400, "invalid_request_error", "`max_tokens`"),
        ("server_tool", "BadRequestError", 400, "invalid_request_error", "`tools[0]`"),
        ("unknown_model", "NotFoundError", 404, "not_found_error", "`nowhere`"),
        ("over_budget", "RateLimitError", 429, "rate_limit_error", "Budget `team:poor-anthropic@"),
    ],
)
def test_messages_raise(messages_told: dict, check, raised, status: int, kind, said) -> None:
    seen = messages_told[check]
    assert (seen["raised"], seen["status"], seen["type"]) == (raised, status, kind)
    assert said in seen["message"]
    assert seen["request_id"].startswith("req_")


def test_messages_that_are_left_or_too_dear(gateway, messages_told: dict) -> None:
    is_stopped(gateway, messages_told["abort"])
    is_refused_once(gateway, "poor-anthropic", messages_told["over_budget"])


def test_messages_of_every_block_go_on(messages_told: dict) -> None:
    """Refused is what was just said, and what stands on the wrong side, as at Anthropic."""
    seen = messages_told["blocks"]
    assert len({name.split()[1] for name in seen}) >= 25
    for name, told in seen.items():
        place, kind, _ = name.split()
        wrong_side = (place, kind) in {("earlier", "tool_use"), ("answer", "tool_result")}
        if place != "said" and not wrong_side:
            assert told["status"] == 200, (name, told)
        if told["status"] == 200:
            assert (told["count"] > 0) is (place == "earlier")
        else:
            assert (told["status"], "`messages[" in told["message"]) == (400, True), (name, told)


# ---------------------------------------------------------------- OpenAI's Responses


def test_no_check_of_responses_broke(responses_told: dict) -> None:
    broken = {name: seen for name, seen in responses_told.items() if "failed" in str(seen)}
    assert broken == {}


def test_responses(gateway, responses_told: dict) -> None:
    whole, streamed = responses_told["whole"], responses_told["streamed"]
    assert (whole["object"], whole["status"]) == ("response", "incomplete")
    assert whole["text"].startswith(LABEL)
    assert streamed["text"] == streamed["deltas"] == whole["text"]
    assert streamed["kinds"].count("response.output_text.delta") > 1
    for seen in (whole, streamed, responses_told["spilled"]):
        row, usage = row_of(gateway, seen["request_id"]), seen["usage"]
        given = {**usage, "input_tokens": usage["input_tokens"] - usage["cached_tokens"]}
        assert {name: row[name] for name in BOOKED} == {name: given[name] for name in BOOKED}
        assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert row["backend"] == "api"
    accumulated = responses_told["accumulated"]
    assert accumulated["status"] == "completed"
    assert accumulated["text"].startswith(LABEL)
    assert accumulated["kinds"][-1] == "response.output_text.done"


@pytest.mark.parametrize("check", ["tools", "tools_streamed"])
def test_responses_call_functions(responses_told: dict, check: str) -> None:
    seen = responses_told[check]
    (call,) = seen["calls"]
    assert (seen["status"], call["name"]) == ("completed", "weather")
    assert call["arguments"].keys() == {"town", "days"}
    assert seen.get("parts", 2) > 1
    assert responses_told["outputs"]["text"].startswith(LABEL)


def test_responses_are_parsed(responses_told: dict) -> None:
    assert responses_told["parsed"]["document"].keys() == {"name", "count"}
    assert len(set(responses_told["asynchronous"]["texts"])) == 1


@pytest.mark.parametrize(
    ("check", "raised", "status", "code", "param"),
    [
        ("bad_key", "AuthenticationError", 401, "invalid_api_key", None),
        ("bad_request", "BadRequestError", 400, None, "max_output_tokens"),
        ("kept", "NotFoundError", 404, "previous_response_not_found", "previous_response_id"),
        ("unknown_model", "NotFoundError", 404, "model_not_found", "model"),
        ("over_budget", "RateLimitError", 429, "budget_exceeded", None),
    ],
)
def test_responses_raise(responses_told: dict, check, raised, status: int, code, param) -> None:
    seen = responses_told[check]
    assert (seen["raised"], seen["status"]) == (raised, status)
    assert (seen["code"], seen["param"]) == (code, param)
    assert seen["request_id"].startswith("req_")


def test_responses_that_are_left_or_too_dear(gateway, responses_told: dict) -> None:
    is_stopped(gateway, responses_told["abort"])
    is_refused_once(gateway, responses_told["poor"], responses_told["over_budget"])
