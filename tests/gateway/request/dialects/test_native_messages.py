"""Requests in Anthropic's Messages to targets that speak them: whole there, whole back, booked."""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httpx
import pytest
from messages_upstream import ANSWER, BILL_PUSD, CODE, PATH, SEARCH, event

from backends.messages_answer import MessagesStream
from backends.native_events import MEMBER
from gateway.batches.authority import LineTicket, load_authority
from gateway.batches.line_endpoint import PREFIX
from gateway.errors import RequestError
from gateway.http.body import decode_members, encode
from gateway.kinds.relay import ByteRelay
from gateway.request.dialects.messages_encoder import MessagesEncoder
from gateway.request.dialects.native_messages import (
    native_request,
    stated_searches,
    whole_request,
)


def send(stack: Any, asked: dict[str, Any], **headers: str) -> httpx.Response:
    return stack.client.post(
        stack.url + PATH, content=json.dumps(asked).encode(),
        headers={**stack.headers(), "content-type": "application/json", **headers},
    )  # fmt: skip


def test_a_session_of_claude_code_goes_whole_and_comes_back_whole(spoken, upstream) -> None:
    asked = {**CODE, "model": "told/m"}
    answer = send(spoken, asked, **{"anthropic-beta": "a-1,b-2", "anthropic-version": "2023-06-01"})
    assert answer.status_code == 200, answer.text
    assert answer.content == b"".join(ANSWER)
    assert "x-breakeven-ignored" not in answer.headers
    ((path, heads, body),) = upstream.asked
    compact = {"separators": (",", ":"), "ensure_ascii": False}
    assert path == PATH
    assert json.dumps(json.loads(body), **compact) == json.dumps(asked | {"model": "m"}, **compact)
    assert (heads["x-api-key"], heads["anthropic-version"]) == ("key-of-ours", "2023-06-01")
    assert heads["anthropic-beta"] == "a-1,b-2"
    (row,) = spoken.settled(answer)
    assert (row["status"], row["basis"], row["finish_reason"]) == ("finished", "reported", "stop")
    counted = ("input_tokens", "cached_tokens", "cache_write_tokens", "cache_write_1h_tokens")
    assert [row[name] for name in counted] == [40, 2000, 10, 20]
    assert (row["output_tokens"], row["cost_pusd"]) == (50, BILL_PUSD)
    assert row["cost_pusd"] <= row["bound_pusd"]


def test_values_keep_their_bytes_and_their_order(spoken, upstream) -> None:
    text = json.dumps({**CODE, "model": "told/m", "stream": False}, indent=1)
    text = text.replace('"max_tokens": 3200', '"max_tokens": 3200,\n "temperature": 1.0e0')
    answer = spoken.client.post(
        spoken.url + PATH, content=text.encode(),
        headers={**spoken.headers(), "content-type": "application/json"},
    )  # fmt: skip
    assert answer.status_code == 200, answer.text
    ((_, _, body),) = upstream.asked
    sent = decode_members(text.encode())
    sent["model"] = encode("m")
    assert {name: bytes(value) for name, value in decode_members(body).items()} == {
        name: bytes(value) for name, value in sent.items()
    }
    assert list(decode_members(body)) == list(sent)
    assert b'"temperature":1.0e0' in body


def test_an_answer_in_one_piece_is_the_targets_own(spoken, upstream) -> None:
    answer = send(spoken, {**CODE, "model": "claude/m", "stream": False})
    assert answer.content == upstream.whole
    (row,) = spoken.settled(answer)
    assert (row["cost_pusd"], row["finish_reason"]) == (BILL_PUSD, "content_filter")


def test_users_stay_here_and_betas_are_the_operators(spoken, upstream) -> None:
    betas = {"anthropic-beta": "fast-mode-2026-02-01,interleaved-thinking-2025-05-14"}
    asked = {**CODE, "model": "claude/m", "speed": "fast"}
    answer = send(spoken, asked, **betas)
    assert answer.status_code == 200, answer.text
    ((_, heads, body),) = upstream.asked
    assert json.loads(body).keys() == CODE.keys() - {"metadata"}
    assert heads["anthropic-beta"] == "interleaved-thinking-2025-05-14"
    told = answer.headers["x-breakeven-ignored"].split(", ")
    assert told == ["speed", "metadata.user_id", "anthropic-beta.fast-mode-2026-02-01"]


def test_a_hang_up_reaches_the_target_and_is_booked_by_what_was_told(spoken, upstream) -> None:
    upstream.stream, upstream.hangs = ANSWER[:8], True
    asked = json.dumps({**CODE, "model": "claude/m"}).encode()
    head = {**spoken.headers(), "content-type": "application/json"}
    with spoken.client.stream("POST", spoken.url + PATH, content=asked, headers=head) as answer:
        seen = b""
        for piece in answer.iter_raw():
            seen += piece
            if b"Hello" in seen:
                break
    assert seen == b"".join(ANSWER[:8])
    assert upstream.left.wait(20)
    (row,) = spoken.settled(answer.headers["x-request-id"])
    assert row["status"] == "client_gone"
    assert (row["cached_tokens"], row["input_tokens"]) == (2000, 40)


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        ({"tools": [SEARCH]}, "tools[0]"),
        (
            {"mcp_servers": [{"type": "url", "url": "https://x.example", "name": "x"}]},
            "mcp_servers",
        ),
        ({"container": {"skills": [{"skill_id": "pptx", "type": "anthropic"}]}}, "container"),
    ],
)
def test_what_the_provider_runs_needs_a_target_that_declares_it(
    spoken, upstream, asked: dict, place: str
) -> None:
    plain = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9, **asked}
    refused = send(spoken, {"model": "claude/m", **plain})
    assert refused.status_code == 400
    assert "hosted_tools" in refused.json()["error"]["message"]
    assert not upstream.asked
    chats = send(spoken, {"model": "own", **plain})
    assert (chats.status_code, f"`{place}`" in chats.text) == (400, True)
    assert send(spoken, {"model": "searching/m", **plain}).content == upstream.whole
    assert json.loads(upstream.asked[0][2]) == {"model": "m", **plain}


@pytest.mark.parametrize(
    "asked",
    [
        {"container": "container_011"},
        {"container": {"id": "container_011", "skills": []}},
        {"fallbacks": [{"model": "other"}]},
        {"inference_geo": "us"},
        {"n": 2},
        {"messages": [{"role": "user", "content": [
            {"type": "document", "source": {"type": "file", "file_id": "file_1"}},
        ]}]},
        {"messages": [{"role": "user", "content": [
            {"type": "container_upload", "file\\u005fid": "file_1"},
        ]}], "mcp_servers": [{"name": "x"}]},
    ],
)  # fmt: skip
def test_what_may_be_anybodys_or_has_another_price_is_refused(spoken, upstream, asked) -> None:
    plain = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9}
    answer = spoken.client.post(
        spoken.url + PATH,
        content=json.dumps({"model": "searching/m", **plain, **asked}).replace("\\\\u", "\\u"),
        headers={**spoken.headers(), "content-type": "application/json"},
    )
    assert answer.status_code == 400, answer.text
    assert not upstream.asked


def test_an_overloaded_target_is_followed_by_one_that_is_not(spoken, upstream) -> None:
    upstream.status, upstream.headers = 529, {"retry-after": "7"}
    upstream.whole = b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}'
    answer = send(spoken, {**CODE, "model": "busy/m"})
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "7")
    assert answer.json()["error"]["type"] == "overloaded_error"
    (row,) = spoken.settled(answer)
    assert row["cost_pusd"] == 0
    upstream.headers = {}
    plain = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 9}
    eased = send(spoken, {"model": "both", **plain})
    assert eased.status_code == 200
    assert eased.headers["x-breakeven-backend"].startswith("pool:main")


def test_an_error_inside_a_stream_ends_it_with_an_error_of_ours(spoken, upstream) -> None:
    failed = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
    upstream.stream = [*ANSWER[:8], failed]
    answer = send(spoken, {**CODE, "model": "broken/m"})
    passed, _, last = answer.content.partition(b"event: error\n")
    assert passed == b"".join(ANSWER[:8])
    assert json.loads(last.removeprefix(b"data: "))["error"]["type"] in (
        "overloaded_error", "api_error",
    )  # fmt: skip
    assert spoken.settled(answer)[0]["status"] == "upstream_error"


def test_a_stream_without_its_last_word_is_no_answer(spoken, upstream) -> None:
    upstream.stream = ANSWER[:-1]
    answer = send(spoken, {**CODE, "model": "cut/m"})
    assert answer.content.startswith(b"".join(ANSWER[:10]))
    assert b"event: error" in answer.content
    assert b"message_stop" not in answer.content


def test_a_prompt_beyond_the_context_is_told_as_that(spoken, upstream) -> None:
    upstream.status = 400
    upstream.whole = json.dumps({
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 > 5 maximum"},
    }).encode()  # fmt: skip
    answer = send(spoken, {**CODE, "model": "short/m"})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == "prompt is too long: 9 > 5 maximum"
    chat = spoken.chat("short/m")
    assert chat.json()["error"]["code"] == "context_length_exceeded"


def test_a_spent_balance_is_no_fault_of_the_client(spoken, upstream) -> None:
    upstream.status = 400
    upstream.whole = b'{"error":{"message":"Your credit balance is too low to access it"}}'
    assert send(spoken, {**CODE, "model": "poor/m"}).status_code == 502


def test_chat_is_translated_there_and_back(spoken, upstream) -> None:
    answer = spoken.post("/v1/chat/completions", {
        "model": "claude/m", "max_completion_tokens": 99, "seed": 1,
        "messages": [
            {"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"},
        ],
    })  # fmt: skip
    assert answer.status_code == 200, answer.text
    ((path, _, body),) = upstream.asked
    assert path == PATH
    assert json.loads(body) == {
        "model": "m", "max_tokens": 99, "system": [{"type": "text", "text": "Be brief."}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }  # fmt: skip
    document = answer.json()
    assert document["choices"][0]["message"] == {"role": "assistant", "content": "It is."}
    assert document.keys() == {
        "id",
        "object",
        "created",
        "model",
        "choices",
        "usage",
        "service_tier",
    }
    assert answer.headers["x-breakeven-ignored"] == "seed"
    assert spoken.settled(answer)[0]["cost_pusd"] == BILL_PUSD


def test_a_stream_of_chat_has_chats_chunks_alone(spoken, upstream) -> None:
    body = {"model": "claude/m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
    answer = spoken.post("/v1/chat/completions", body)
    chunks = [
        json.loads(line[6:]) for line in answer.text.splitlines()
        if line.startswith("data: {")
    ]  # fmt: skip
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
    assert "".join(delta.get("content") or "" for delta in deltas) == "Hello"
    assert "".join(delta.get("reasoning_content") or "" for delta in deltas) == "hm"
    assert not any("usage" in chunk for chunk in chunks)
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert answer.text.endswith("data: [DONE]\n\n")
    assert MEMBER not in answer.text
    assert spoken.settled(answer)[0]["cost_pusd"] == BILL_PUSD


def test_chat_that_has_no_form_there_is_refused_by_its_name(spoken, upstream) -> None:
    answer = spoken.chat("claude/m", function_call="auto", functions=[{"name": "f"}])
    assert (answer.status_code, "`functions`" in answer.text) == (400, True)
    assert not upstream.asked


@pytest.mark.parametrize(
    "asked",
    [
        {"tools": [{"type": "custom", "custom": {"name": "run"}}]},
        {"functions": [{"name": "f"}], "function_call": "auto"},
    ],
)
def test_what_one_target_has_no_form_for_another_one_answers(spoken, upstream, asked) -> None:
    """Where a request goes must not decide whether it can be said."""
    answer = spoken.chat("spilling", **asked)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-breakeven-backend"] == "alpha/m"
    assert not upstream.asked
    first, second = spoken.settled(answer, count=2)
    assert (first["status"], first["cost_pusd"]) == ("rejected", 0)
    assert second["status"] == "finished"


def test_tokens_are_counted_by_the_target_that_would_serve(spoken, upstream) -> None:
    upstream.whole = b'{"input_tokens": 1234}'
    left = ("max_tokens", "stream")
    asked = {name: value for name, value in CODE.items() if name not in left}
    counted = spoken.post(f"{PATH}/count_tokens", {**asked, "model": "claude/m"})
    assert counted.json() == {"input_tokens": 1234}
    assert counted.headers["x-breakeven-tokens"] == "counted"
    ((path, _, body),) = upstream.asked
    assert (path, json.loads(body)["system"]) == (f"{PATH}/count_tokens", CODE["system"])
    upstream.status = 404  # not every server has the path
    guessed = spoken.post(f"{PATH}/count_tokens", {**asked, "model": "claude/m"})
    assert (guessed.status_code, guessed.headers["x-breakeven-tokens"]) == (200, "estimated")
    searching = {"messages": asked["messages"], "tools": [SEARCH]}
    upstream.status = 200
    told = spoken.post(f"{PATH}/count_tokens", {**searching, "model": "searching/m"})
    assert told.json() == {"input_tokens": 1234}
    refused = spoken.post(f"{PATH}/count_tokens", {**searching, "model": "own"})
    assert (refused.status_code, "`tools[0]`" in refused.text) == (400, True)


def test_an_error_in_one_piece_under_a_200_is_judged_by_what_it_says(spoken, upstream) -> None:
    upstream.whole = b'{"type":"error","error":{"type":"overloaded_error","message":"x"}}'
    answer = send(spoken, {**CODE, "model": "full/m", "stream": False})
    assert answer.status_code == 503
    assert spoken.settled(answer)[0]["cost_pusd"] == 0


# ---------------------------------------------------------------- alone


@pytest.mark.parametrize("size", [7, 100, 10**6])
def test_the_end_is_withheld_until_the_books_have_it(size: int) -> None:
    """However it is cut, what ends an answer leaves with the rest, behind the settle."""
    stream, relay = MessagesStream(created_s=1, native=True), ByteRelay(hide_usage=False)
    encoder = MessagesEncoder("req_1")
    whole = b"".join(ANSWER)
    told = b""
    for at in range(0, len(whole), size):
        told += encoder.feed(relay.feed(stream.feed(whole[at : at + size])))
    assert told == b"".join(ANSWER[:-2])
    last = encoder.feed(relay.finish()) + encoder.end()
    assert last == b"".join(ANSWER[-2:])
    assert relay.usage is not None
    assert (relay.usage["completion_tokens"], relay.usage_final) == (50, True)


def refusal(kind: str = "unsupported", param: str = "tools[0]") -> RequestError:
    return RequestError(kind, "no form", param=param)


def test_only_what_chat_has_no_form_for_may_go_whole() -> None:
    members = decode_members(b'{"model": "m", "max_tokens": 5, "messages": []}')
    assert whole_request(members, refusal("bad_request")) is None
    whole = whole_request(members, refusal())
    assert whole is not None
    assert whole.native.members == members
    with suppress(KeyError):
        del members["messages"]


def check_native(build: Callable[[], bytes]) -> Any:
    return native_request(decode_members(build()))


def test_a_file_of_an_outcome_is_no_file_that_is_read() -> None:
    def body(block: str) -> bytes:
        return b'{"messages": [{"content": [%b]}]}' % block.encode()

    told = '{"type": "bash_code_execution_output", "file_id": "file_1"}'
    named = '{"type": "image", "source": {"type": "file", "file_id": "file_1"}}'
    assert check_native(lambda: body(told)) is not None
    assert check_native(lambda: body(named)) is None


def test_a_line_of_a_batch_goes_whole(spoken, upstream) -> None:
    """What chat has no form for reaches a target that speaks Messages from a batch as well."""
    named = LineTicket(
        key_id=spoken.key("liner", team="lines").key_id, batch_id="batch_n",
        request_id=f"batch_n-1-{time.monotonic_ns()}", expires_us=time.time_ns() // 1000 + 10**7,
    )  # fmt: skip
    token = load_authority(spoken.runtime.run_dir).sign(named)
    asked = {**CODE, "model": "claude/m", "stream": False, "tools": [*CODE["tools"], SEARCH]}
    answer = spoken.client.post(
        f"{spoken.url}{PREFIX}{PATH}", json={**asked, "model": "searching/m"},
        headers={"authorization": f"Bearer {token}"},
    )  # fmt: skip
    assert answer.status_code == 200, answer.text
    assert answer.content == upstream.whole
    ((_, _, body),) = upstream.asked
    assert json.loads(body) == {
        name: "m" if name == "model" else value
        for name, value in asked.items()
        if name != "metadata"
    }
    (row,) = spoken.settled(answer)
    assert (row["team_id"], row["status"]) == ("lines", "finished")


FETCH = {"type": "web_fetch_20250910", "name": "web_fetch", "max_uses": 9}
PLAIN = {"name": "Read", "input_schema": {"type": "object"}}


@pytest.mark.parametrize(
    ("asked", "searches"),
    [
        ({}, 0),
        ({"tools": [PLAIN]}, 0),
        ({"tools": [SEARCH]}, 2),
        ({"tools": [PLAIN, SEARCH, FETCH, {"type": "bash_20250124", "name": "bash"}]}, 2),
        ({"tools": [SEARCH, {**SEARCH, "type": "web_search_20260209"}]}, 4),
        ({"tools": [SEARCH, {**SEARCH, "max_uses": None}]}, 0),
        ({"tools": [{**SEARCH, "max_uses": 0}]}, 0),
        ({"tools": [{**SEARCH, "max_uses": True}]}, 0),
        ({"tools": [{**SEARCH, "max_uses": 2.0}]}, 0),
        ({"tools": [{**SEARCH, "max_uses": 10**30}]}, 0),
        ({"tools": [{**SEARCH, "Max_Uses": 90}]}, 0),
        ({"tools": [SEARCH, {"type": "code_execution_20250825", "name": "code_execution"}]}, 0),
        ({"tools": [SEARCH], "mcp_servers": [{"name": "x"}]}, 0),
        ({"tools": [{**SEARCH, "type": "web_search"}]}, 0),
    ],
)
def test_a_limit_of_searches_is_what_every_search_states(asked: dict, searches: int) -> None:
    assert stated_searches(decode_members(json.dumps(asked).encode())) == searches


@pytest.mark.parametrize("blank", [b"", b" "])
def test_what_stands_twice_goes_as_it_was_judged(blank: bytes) -> None:
    """Detectors, files and bounds are of the last; a target may read the first."""
    hidden = b'{"type":"file","file_id":"theirs"}'
    twice = b'{"role":"user","content":"read","content":%b"judged"}' % blank
    image = (
        b'{"type":"image","source":%b,"source":{"type":"url","url":"https://x.example"}}' % hidden
    )
    text = b'{"model":"m","messages":[%b,{"role":"user","content":[%b]}]}' % (twice, image)
    native = native_request(decode_members(text))
    assert native is not None
    told = bytes(native.members["messages"])
    assert (b"judged" in told, b"read" in told, b"theirs" in told) == (True, False, False)


def test_what_stands_once_keeps_its_bytes() -> None:
    text = b'{"model":"m","messages":[ {"a":1.0e0,"b":{"a":"\\u00e4"}}, {"a":2} ],"system":"x"}'
    native = native_request(decode_members(text))
    assert native is not None
    assert encode(dict(native.members)) == text


def test_a_limit_that_stands_twice_is_none() -> None:
    twice = b'{"tools": [{"type": "web_search_20250305", "max_uses": 1, "max_uses": 90}]}'
    assert stated_searches(decode_members(twice)) == 0
