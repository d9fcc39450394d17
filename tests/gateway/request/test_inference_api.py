"""The hot paths over real sockets: answers of every kind, headers, refusals and limits."""

import contextlib
import gzip
import json
import socket
import time

import httpx
import pytest

from gateway.errors import TABLE
from gateway.request import inference_api

CHAT = "/v1/chat/completions"
MESSAGES = [{"role": "user", "content": "hello there"}]


def error_of(answer: httpx.Response) -> dict:
    document = answer.json()
    assert set(document) == {"error"}
    assert set(document["error"]) == {"message", "type", "param", "code"}
    assert answer.headers["x-request-id"].startswith("req_")
    return document["error"]


@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
        (CHAT, {"model": "api", "messages": MESSAGES, "max_tokens": 9}, "chat.completion"),
        (CHAT, {"model": "own", "messages": MESSAGES, "max_tokens": 9}, "chat.completion"),
        (
            "/v1/completions",
            {"model": "api", "prompt": "hi", "max_tokens": 9},
            "text_completion",
        ),
        ("/v1/completions", {"model": "own", "prompt": ["a", "b"]}, "text_completion"),
        ("/v1/embeddings", {"model": "embed", "input": ["one", "two words"]}, "list"),
    ],
)
def test_every_kind_is_answered_and_booked_as_the_target_said(stack, path, body, kind) -> None:
    answer = stack.post(path, body)
    assert answer.status_code == 200, answer.text
    document = answer.json()
    assert document["object"] == kind
    (row,) = stack.settled(answer)
    usage = document["usage"]
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    assert (row["status"], row["basis"], row["stream"]) == ("finished", "reported", 0)
    assert row["input_tokens"] + row["cached_tokens"] == usage["prompt_tokens"]
    assert row["cached_tokens"] == cached
    assert row["output_tokens"] == usage.get("completion_tokens", 0)
    assert row["target"] == answer.headers["x-breakeven-backend"]
    assert row["policy"] == answer.headers["x-breakeven-policy"] == "plain"
    assert not [name for name in answer.headers if name.startswith("x-ratelimit")], "no limits"
    assert answer.headers["x-breakeven-decision"]


def test_the_cost_header_is_the_row_is_price_times_tokens(stack) -> None:
    answer = stack.chat("api", max_tokens=20)
    (row,) = stack.settled(answer)
    usage = answer.json()["usage"]
    # gpt-4o-mini: $0.15, $0.075 and $0.60 per million tokens in, cached and out.
    cached = usage["prompt_tokens_details"]["cached_tokens"]
    fresh = usage["prompt_tokens"] - cached
    cost = 150_000 * fresh + 75_000 * cached + 600_000 * usage["completion_tokens"]
    assert row["cost_pusd"] == cost
    whole, fraction = answer.headers["x-breakeven-cost-usd"].split(".")
    assert int(whole) * 10**12 + int(fraction) == cost
    assert len(fraction) == 12


def test_an_own_answer_costs_its_share_of_the_gpu_hour(stack) -> None:
    answer = stack.chat("own", max_tokens=50)
    (row,) = stack.settled(answer)
    assert row["engine_us"] > 0
    assert row["cost_pusd"] == pytest.approx(row["engine_us"] * 3.5e12 / 3600e6, rel=1e-3)
    assert row["bound_pusd"] >= row["cost_pusd"]


def test_tools_n_logprobs_and_formats_reach_the_target_and_come_back(stack) -> None:
    tool = {
        "type": "function",
        "function": {
            "name": "weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
        },
    }
    called = stack.chat("own", tools=[tool], tool_choice="required", max_tokens=60).json()
    (call,) = called["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "weather"
    assert json.loads(call["function"]["arguments"]) == {"city": "simulated"}

    many = stack.chat("own", n=3, max_tokens=5)
    assert [choice["index"] for choice in many.json()["choices"]] == [0, 1, 2]
    (row,) = stack.settled(many)
    assert row["output_tokens"] == many.json()["usage"]["completion_tokens"] == 15

    likely = stack.chat("own", logprobs=True, top_logprobs=1, max_tokens=4).json()
    assert len(likely["choices"][0]["logprobs"]["content"]) == 4

    shape = {"type": "json_object"}
    written = stack.chat("own", response_format=shape, max_tokens=40).json()
    assert json.loads(written["choices"][0]["message"]["content"]) == {}


def test_aliases_and_pass_through(stack) -> None:
    alias = stack.chat("gpt-4o", max_tokens=3)
    assert stack.settled(alias)[0]["model"] == "chat"
    through = stack.chat("alpha/brand-new", max_tokens=3)
    (row,) = stack.settled(through)
    assert (row["target"], row["upstream_model"]) == ("alpha/brand-new", "brand-new")
    assert through.json()["model"] == "brand-new"


def test_a_targets_own_refusal_is_passed_on_and_costs_nothing(stack) -> None:
    answer = stack.chat("own", max_tokens=10**9)
    assert answer.status_code == 400
    assert "error" in answer.json()


@pytest.mark.parametrize(
    ("body", "kind", "param"),
    [
        ({"model": "nothing", "messages": MESSAGES}, "no_model", "model"),
        ({"model": "nowhere/m", "messages": MESSAGES}, "no_model", "model"),
        ({"messages": MESSAGES}, "bad_request", "model"),
        ({"model": "api", "messages": []}, "bad_request", "messages"),
        ({"model": "api", "messages": MESSAGES, "n": 99}, "bad_request", "n"),
        ([1, 2], "bad_request", None),
    ],
)
def test_what_cannot_be_served_is_told_as_openai_does(stack, body, kind, param) -> None:
    answer = stack.post(CHAT, body)
    error, row = error_of(answer), TABLE[kind]
    assert (answer.status_code, error["type"], error["code"]) == row[:3]
    assert error["param"] == param


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b'{"model": "api", "messages": [', "bad_request"),
        (b"\xff\xfe", "bad_request"),
        (b'{"model": "own", "model": "api", "messages": []}', "duplicate_key"),
        (b"[" * 100_000, "bad_request"),
        (b"", "bad_request"),
    ],
)
def test_broken_bodies(stack, text: bytes, kind: str) -> None:
    headers = {**stack.headers(), "content-type": "application/json"}
    answer = httpx.post(stack.url + CHAT, content=text, headers=headers, trust_env=False)
    assert error_of(answer)["code"] == TABLE[kind].code
    assert answer.status_code == 400


def test_method_content_type_and_unknown_paths(stack) -> None:
    got = stack.get("/v1/completions")
    assert (got.status_code, got.headers["allow"]) == (405, "POST")
    assert error_of(got)["code"] == "method_not_allowed"
    headers = {**stack.headers(), "content-type": "text/plain"}
    sent = httpx.post(stack.url + CHAT, content=b"{}", headers=headers, trust_env=False)
    assert (sent.status_code, error_of(sent)["code"]) == (415, "unsupported_media_type")
    headers = {**stack.headers(), "content-encoding": "gzip"}
    packed = gzip.compress(b'{"model": "own"}')
    for path in (CHAT, "/v1/messages"):
        sent = httpx.post(stack.url + path, content=packed, headers=headers, trust_env=False)
        assert sent.status_code == 415
        assert "`content-encoding`" in sent.json()["error"]["message"]
    for path in ("/v1/nothing", "/v1/completions/x", "/nothing"):
        lost = stack.post(path, {})
        assert (lost.status_code, lost.json()["error"]["code"]) == (404, "unknown_url")


def test_keys_of_every_bad_kind_are_401_without_a_difference(stack) -> None:
    valid = stack.token
    texts = set()
    for token in ("gw_0000000000000000_" + "0" * 64, valid[:-1] + "x", valid + "0"):
        answer = stack.chat("api", token)
        assert answer.status_code == 401
        texts.add(error_of(answer)["message"])
    assert len(texts) == 1
    missing = httpx.post(stack.url + CHAT, json={}, trust_env=False)
    assert (missing.status_code, error_of(missing)["code"]) == (401, "invalid_api_key")


def test_a_body_over_the_limit_is_413_before_and_while_it_arrives(run_stack) -> None:
    with run_stack(server={"body_limit_bytes": 2048}) as stack:
        long = {"model": "api", "messages": [{"role": "user", "content": "x" * 4096}]}
        announced = stack.post(CHAT, long)
        assert (announced.status_code, error_of(announced)["code"]) == (413, "request_too_large")

        def parts():
            yield from (b"x" * 512 for _ in range(16))

        headers = {**stack.headers(), "content-type": "application/json"}
        chunked = httpx.post(stack.url + CHAT, content=parts(), headers=headers, trust_env=False)
        assert (chunked.status_code, error_of(chunked)["code"]) == (413, "request_too_large")
        assert stack.chat("api", max_tokens=2).status_code == 200


def test_a_body_that_keeps_coming_may_take_its_time(run_stack, monkeypatch) -> None:
    """Twice the patience in all; the control: the same pause with next to nothing sent."""
    monkeypatch.setattr(inference_api, "SLOWEST_BYTES_PER_S", 4096)

    def asked(stack, first: bytes, rest: bytes) -> bytes:
        with socket.create_connection(("127.0.0.1", stack.port), timeout=20) as slow:
            head = f"POST {CHAT} HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {stack.token}\r\n"
            size = f"content-type: application/json\r\ncontent-length: {len(first + rest)}\r\n\r\n"
            slow.sendall((head + size).encode() + first)
            time.sleep(1.0)
            with contextlib.suppress(OSError):
                slow.sendall(rest)
            return slow.recv(4096)[:12]

    body = {"model": "api", "max_tokens": 1, "messages": MESSAGES, "metadata": {"a": "x" * 60_000}}
    text = json.dumps(body).encode()
    with run_stack(server={"timeouts": {"receive_s": 0.5}}) as stack:
        assert asked(stack, text[:-10], text[-10:]) == b"HTTP/1.1 200"
        assert asked(stack, text[:10], text[10:]) == b"HTTP/1.1 408"


def test_a_slow_sender_is_408_and_an_overlong_request_is_504(run_stack) -> None:
    limits = {"timeouts": {"receive_s": 0.3, "total_s": 1.0}}
    with run_stack(server=limits) as stack:
        with socket.create_connection(("127.0.0.1", stack.port), timeout=20) as slow:
            head = f"POST {CHAT} HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {stack.token}\r\n"
            slow.sendall(head.encode() + b"content-length: 100\r\n\r\n{")
            assert slow.recv(4096).startswith(b"HTTP/1.1 408")
        answer = stack.chat("late", max_tokens=2)
        assert (answer.status_code, error_of(answer)["code"]) == (504, "upstream_timeout")
        (row,) = stack.settled(answer)
        assert row["status"] == "timeout"
        assert stack.entries("late")[-1]["status"] == "aborted"


def test_more_requests_than_the_worker_takes_get_503_and_come_back(run_stack, patiently) -> None:
    with run_stack(server={"max_in_flight": 1}) as stack:
        waiting = stack.raw({"model": "late", "messages": MESSAGES})
        patiently(lambda: stack.app.hot.in_flight == 1)
        refused = stack.chat("api", max_tokens=2)
        assert (refused.status_code, error_of(refused)["code"]) == (503, "overloaded")
        assert refused.headers["retry-after"] == "1"
        waiting.close()
        patiently(lambda: stack.app.hot.in_flight == 0)
        assert stack.chat("api", max_tokens=2).status_code == 200


def test_a_client_that_stops_reading_is_cut_and_settled(run_stack, patiently) -> None:
    """Its connection is closed too, although it never takes what was sent."""
    with run_stack(server={"timeouts": {"client_stall_s": 0.5}}) as stack:
        body = {"model": "own", "messages": MESSAGES, "stream": True, "ignore_eos": True}
        body["max_tokens"] = 60_000
        body["logprobs"] = True
        body["n"] = 8
        stalled = socket.socket()
        stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stalled.connect(("127.0.0.1", stack.port))
        data = json.dumps(body).encode()
        head = f"POST {CHAT} HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {stack.token}\r\n"
        stalled.sendall(head.encode() + b"content-length: %d\r\n\r\n" % len(data) + data)
        rows = patiently(lambda: stack.rows("settled_us IS NOT NULL"), 60)
        assert [(row["status"], row["basis"]) for row in rows] == [("timeout", "continuous")]
        assert rows[0]["output_tokens"] > 0
        patiently(lambda: stack.entries("engine"))
        assert stack.entries("engine")[-1]["status"] == "aborted"
        assert stack.promises() == [0.0] * 4
        patiently(lambda: stack.app.hot.in_flight == 0)
        patiently(lambda: stack.connections() == 0)
        stalled.close()
