"""The official SDKs, unchanged, are clients of the gateway: what they saw and what was booked."""

import json
import threading
from collections.abc import Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import pytest
from loop_config import MODELS as LOOP_MODELS

APPLIED_LIMIT_S = 60
LONG_TOKENS = 4000  # what the impatient clients ask for
FINISHED = 20  # the checks that end in an answer, the asynchronous one with eight of them
LABEL = "[simulated]:"  # how every answer of the stand-in begins


def test_each_program_runs_its_own_major(told: dict, sdk: str) -> None:
    major = {"openai-2": "2", "openai-3": "3", "openai-node": "6"}[sdk]
    assert told["sdk"].partition(".")[0] == major


def test_no_check_broke(told: dict) -> None:
    broken = {name: seen for name, seen in told.items() if "failed" in str(seen)}
    assert broken == {}


def test_chat(told: dict) -> None:
    seen = told["chat"]
    assert (seen["object"], seen["role"]) == ("chat.completion", "assistant")
    assert seen["text"].startswith(LABEL)
    assert seen["finish"] == "length"
    usage = seen["usage"]
    assert usage["output"] == 12
    assert usage["total"] == usage["prompt"] + 12 > 12


def test_completion(told: dict) -> None:
    assert told["completion"]["object"] == "text_completion"
    assert told["completion"]["text"].startswith(LABEL)
    assert told["completion"]["usage"]["output"] == 9


def test_a_stream_is_the_same_answer_without_the_usage_that_was_not_asked_for(told: dict) -> None:
    seen = told["stream"]
    assert seen["text"] == told["chat"]["text"]
    assert seen["finishes"] == ["length"]
    assert seen["objects"] == ["chat.completion.chunk"]
    assert (seen["usages"], seen["chunks_without_choices"]) == ([], 0)


def test_a_stream_with_usage_ends_with_exactly_one(told: dict) -> None:
    seen = told["stream_with_usage"]
    assert seen["text"] == told["chat"]["text"]
    assert seen["usages"] == [told["chat"]["usage"]]
    assert seen["chunks_without_choices"] == 1


def test_an_api_target_looks_the_same(told: dict) -> None:
    seen = told["stream_spilled"]
    assert seen["text"].startswith(LABEL)
    assert (seen["finishes"], seen["usages"]) == (["length"], [])


def test_tools(told: dict) -> None:
    whole, streamed = told["tools"], told["tools_streamed"]
    assert (whole["finish"], whole["type"], whole["name"]) == ("tool_calls", "function", "weather")
    assert whole["id"]
    assert whole["arguments"].keys() == {"town", "days"}
    assert streamed["arguments"] == whole["arguments"]
    assert (streamed["finish"], streamed["names"]) == ("tool_calls", ["weather"])
    assert len(streamed["ids"]) == 1


def test_several_choices_json_and_logprobs(told: dict) -> None:
    assert sorted(told["several"]["indexes"]) == [0, 1]
    assert told["several"]["usage"]["output"] == 16
    assert told["json_schema"]["document"].keys() == {"name", "count"}
    assert told["logprobs"]["tokens"] == 4
    assert all(count > 0 for count in told["logprobs"]["alternatives"])


def test_models(told: dict) -> None:
    assert told["models"]["ids"] == [
        "chat", "spilled", "embed", "rank", "hear", "draw", "draw-tokens", "speak", "speak-tokens",
        "omni-moderation-latest", *LOOP_MODELS, "text-embedding-3-small",
    ]  # fmt: skip
    assert told["model"] == {"id": "chat", "object": "model", "owner": "breakeven"}


def test_embeddings(told: dict) -> None:
    seen = told["embeddings"]
    assert len(set(seen["sizes"])) == 1
    assert len(seen["sizes"]) == 2
    assert seen["numbers"]
    assert seen["usage"]["total"] == seen["usage"]["prompt"] > 0


@pytest.mark.parametrize(
    ("check", "raised", "status", "code", "param"),
    [
        ("bad_key", "AuthenticationError", 401, "invalid_api_key", None),
        ("bad_request", "BadRequestError", 400, None, "n"),
        ("unknown_model", "NotFoundError", 404, "model_not_found", "model"),
        ("unknown_model_retrieved", "NotFoundError", 404, "model_not_found", "model"),
        ("over_budget", "RateLimitError", 429, "budget_exceeded", None),
    ],
)
def test_errors(
    told: dict, check: str, raised: str, status: int, code: str | None, param: str | None
) -> None:
    seen = told[check]
    assert (seen["raised"], seen["status"]) == (raised, status)
    assert (seen["code"], seen["param"]) == (code, param)
    assert seen["type"]
    assert seen["request_id"].startswith("req_")


def test_an_exhausted_budget_is_asked_once(gateway, told: dict) -> None:
    """Both SDKs retry a 429 twice by themselves; `x-should-retry: false` tells them not to."""
    query = "SELECT request_id FROM refusals WHERE team_id = :team"
    rows = gateway.until(lambda: gateway.rows(query, team=told["poor"]), APPLIED_LIMIT_S)
    assert [row["request_id"] for row in rows] == [told["over_budget"]["request_id"]]


def test_every_answer_has_its_row_and_its_price(gateway, told: dict) -> None:
    seen = told["headers"]
    query = "SELECT * FROM attempts WHERE request_id = :id AND settled_us IS NOT NULL"
    rows = gateway.until(lambda: gateway.rows(query, id=seen["request_id"]), APPLIED_LIMIT_S)
    assert len(rows) == 1
    assert (rows[0]["status"], rows[0]["target"]) == ("finished", seen["backend"])
    assert rows[0]["team_id"] == told["team"]
    assert Decimal(seen["cost"]) == Decimal(rows[0]["cost_pusd"]).scaleb(-12) > 0


def test_nothing_of_a_team_is_left_open(gateway, told: dict) -> None:
    """Twelve answers and eight streams finish; a time-out and an abort do not."""
    query = (
        "SELECT status, count(*) AS n FROM attempts WHERE team_id = :team"
        " GROUP BY status ORDER BY status"
    )
    expected = [{"status": "client_gone", "n": 2}, {"status": "finished", "n": FINISHED}]
    gateway.until(lambda: gateway.rows(query, team=told["team"]) == expected, APPLIED_LIMIT_S)


@pytest.mark.parametrize("check", ["abort", "timeout"])
def test_a_client_that_leaves_stops_the_engine(gateway, told: dict, check: str) -> None:
    if check == "timeout":
        assert told["timeout"]["raised"] in {"APITimeoutError", "APIConnectionTimeoutError"}
    else:
        assert told["abort"]["seen"] == 3
    query = (
        "SELECT request_id, output_tokens FROM attempts"
        " WHERE team_id = :team AND status = 'client_gone' AND stream = :stream"
    )
    left = {"team": told["team"], "stream": check == "abort"}
    rows = gateway.until(lambda: gateway.rows(query, **left), APPLIED_LIMIT_S)
    assert len(rows) == 1
    served = httpx.get(f"{gateway.engine_url}/_journal", trust_env=False).text.splitlines()
    aborted = [json.loads(line) for line in served if '"aborted"' in line]
    assert aborted
    assert all(entry["completion_tokens"] < LONG_TOKENS / 2 for entry in aborted)
    assert rows[0]["output_tokens"] <= max(entry["completion_tokens"] for entry in aborted)


def test_async_streams_are_whole(told: dict) -> None:
    assert len(told["asynchronous"]["chunks"]) == 8
    assert all(count >= 2 for count in told["asynchronous"]["chunks"])


# ---------------------------------------------------------------- negative control


class RefusingGateway(BaseHTTPRequestHandler):
    """A gateway that only says 429, with or without the header that ends retries."""

    def do_POST(self) -> None:
        self.server.asked += 1
        body = b'{"error": {"message": "no", "type": "insufficient_quota", "param": null}}'
        self.send_response(429)
        if self.server.should_retry is not None:
            self.send_header("x-should-retry", self.server.should_retry)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def refusing() -> Iterator[ThreadingHTTPServer]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), RefusingGateway)
    server.asked = 0
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(("should_retry", "asked"), [(None, 3), ("false", 1)])
def test_without_the_header_a_client_comes_back(
    program, refusing: ThreadingHTTPServer, should_retry: str | None, asked: int
) -> None:
    refusing.should_retry = should_retry
    base_url = f"http://127.0.0.1:{refusing.server_address[1]}/v1"
    seen = program(base_url, "any", "any", "over_budget")
    assert seen["over_budget"]["raised"] == "RateLimitError"
    assert refusing.asked == asked
