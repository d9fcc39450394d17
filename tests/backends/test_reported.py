"""Errors of providers as they say them, and the status that each would have been."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backends.errors import (
    BackendError,
    RequestDeclined,
    StreamError,
    UpstreamOverloaded,
    UpstreamRejected,
)
from backends.reported import error_in, error_in_events, error_name, is_error, read_error

FULL, OURS, THEIRS, FAILED = UpstreamOverloaded, UpstreamRejected, RequestDeclined, StreamError


def google(code: int, status: str, **more: object) -> dict:
    return {"error": {"code": code, "message": "m", "status": status, **more}}


TABLE = [
    # OpenAI and Azure
    ({"error": {"type": "requests", "code": "rate_limit_exceeded"}}, FULL, 429),
    ({"error": {"type": "tokens", "code": "rate_limit_exceeded"}}, FULL, 429),
    ({"error": {"type": "insufficient_quota", "code": "insufficient_quota"}}, OURS, 402),
    ({"error": {"code": 429, "type": "insufficient_quota"}}, OURS, 402),
    ({"error": {"code": "billing_hard_limit_reached"}}, OURS, 402),
    ({"error": {"type": "server_error", "code": None}}, FAILED, 500),
    ({"error": {"type": "server_error", "code": "server_overloaded"}}, FULL, 503),
    ({"error": {"code": "slow_down"}}, FULL, 503),
    ({"error": {"code": "content_filter", "param": "prompt"}}, THEIRS, 400),
    ({"error": {"code": "content_policy_violation", "type": "x"}}, THEIRS, 400),
    ({"error": {"code": "ResponsibleAIPolicyViolation"}}, THEIRS, 400),
    ({"error": {"code": "context_length_exceeded", "type": "invalid_request_error"}}, THEIRS, 400),
    ({"error": {"code": "invalid_api_key", "type": "invalid_request_error"}}, OURS, 401),
    ({"error": {"code": "model_not_found", "type": "invalid_request_error"}}, THEIRS, 404),
    ({"error": {"code": "429", "message": "m"}}, FULL, 429),
    ({"error": {"code": "DeploymentNotFound"}}, THEIRS, 404),
    # Anthropic
    ({"type": "error", "error": {"type": "overloaded_error", "message": "m"}}, FULL, 503),
    ({"type": "error", "error": {"type": "rate_limit_error"}}, FULL, 429),
    ({"type": "error", "error": {"type": "api_error"}}, FAILED, 500),
    ({"type": "error", "error": {"type": "timeout_error"}}, FAILED, 504),
    ({"type": "error", "error": {"type": "authentication_error"}}, OURS, 401),
    ({"type": "error", "error": {"type": "billing_error"}}, OURS, 402),
    ({"type": "error", "error": {"type": "permission_error"}}, OURS, 403),
    ({"type": "error", "error": {"type": "invalid_request_error"}}, THEIRS, 400),
    ({"type": "error", "error": {"type": "request_too_large"}}, THEIRS, 413),
    # A filter's 403: our key is right
    ({"error": {"code": 403, "message": "m requires moderation on Azure. Your input was flagged "
                'for "violence".', "metadata": {"reasons": ["violence"]}}}, THEIRS, 403),
    ({"error": {"code": "content_filter", "status": 403, "message": "m"}}, THEIRS, 403),
    ({"error": {"code": 403, "message": "m"}}, OURS, 403),
    ({"error": {"code": 400, "message": "API key not valid. Please pass a valid one."}}, OURS, 400),
    # Gemini and Vertex
    (google(429, "RESOURCE_EXHAUSTED"), FULL, 429),
    ({"error": {"status": "RESOURCE_EXHAUSTED"}}, FULL, 429),
    (google(503, "UNAVAILABLE"), FULL, 503),
    ({"error": {"status": "UNAVAILABLE"}}, FULL, 503),
    (google(400, "INVALID_ARGUMENT"), THEIRS, 400),
    (google(500, "INTERNAL"), FAILED, 500),
    (google(504, "DEADLINE_EXCEEDED"), FAILED, 504),
    (google(403, "PERMISSION_DENIED"), OURS, 403),
    ([google(429, "RESOURCE_EXHAUSTED")], FULL, 429),
    # Bedrock, DashScope, OpenRouter, vLLM, LiteLLM's own proxy
    ({"error": {"__type": "ThrottlingException"}}, FULL, 429),
    ({"error": {"__type": "ServiceUnavailableException"}}, FULL, 503),
    ({"error": {"__type": "ValidationException"}}, THEIRS, 400),
    ({"error": {"code": "Throttling.RateQuota"}}, FULL, 429),
    ({"error": {"code": "Arrearage"}}, OURS, 402),
    ({"error": {"code": "DataInspectionFailed"}}, THEIRS, 400),
    ({"error": {"code": 502, "message": "m", "metadata": {"provider_name": "p"}}}, FAILED, 502),
    ({"error": {"code": 402, "message": "m"}}, OURS, 402),
    ({"error": {"code": 408, "message": "m"}}, FAILED, 408),
    ({"object": "error", "type": "BadRequestError", "code": 400, "message": "m"}, THEIRS, 400),
    ({"object": "error", "type": "InternalServerError", "code": 500}, FAILED, 500),
    ({"error": {"type": "RateLimitError", "code": "500"}}, FULL, 429),
    # Bare texts, nests, and what says nothing
    ({"error": "rate limit exceeded"}, FULL, 429),
    ({"error": "The engine is overloaded"}, FULL, 503),
    ({"error": "You exceeded your current quota, please check your plan"}, OURS, 402),
    ({"error": {"message": "Too Many Requests"}}, FULL, 429),
    ({"error": {"message": "m"}, "status": 429}, FULL, 429),
    ({"error": {"error": {"code": "overloaded"}}}, FULL, 503),
    ({"error": True, "status_code": 529}, FULL, 529),
    ({"error": {"message": "idle timeout"}}, FAILED, None),
    ({"error": {"code": 1302}}, FAILED, None),
    ({"error": {"code": 200}}, FAILED, None),
    ({"error": {"code": True}}, FAILED, None),
    ({"error": 7}, FAILED, None),
    ({}, FAILED, None),
]  # fmt: skip


@pytest.mark.parametrize(("said", "kind", "status"), TABLE)
def test_an_error_is_what_its_status_would_have_been(said, kind, status) -> None:
    error = read_error(json.dumps(said).encode())
    assert (type(error), error.status) == (kind, status)
    assert not error.billable


@pytest.mark.parametrize(
    ("more", "wait_s"),
    [
        ({"retry_after": 7}, 7.0),
        ({"retry_after_ms": 2500}, 2.5),
        ({"retry_after": "2.5"}, 2.5),
        ({"retryDelay": "1m3s"}, 63.0),
        ({"details": [{"@type": "x"}, {"retryDelay": "30s"}]}, 30.0),
        ({"metadata": {"headers": {"Retry-After": "9"}}}, 9.0),
        ({"metadata": {"retry_after_seconds": 4}}, 4.0),
        ({"retry_after": 10**9}, 3600.0),
        ({"retry_after": "Thu, 26 Nov 2026 22:00:00 GMT"}, None),
        ({"retry_after": None}, None),
        ({"retry_after": -1}, None),
        ({"retry_after": True}, None),
        ({}, None),
    ],
)
def test_a_wait_inside_is_kept(more, wait_s) -> None:
    error = read_error(json.dumps({"error": {"code": 429, **more}}).encode())
    assert error.retry_after_s == wait_s


def test_a_refusal_keeps_the_words_and_the_error_has_none() -> None:
    error = read_error(b'{"error":{"code":400,"message":"your prompt: canary"}}')
    assert isinstance(error, RequestDeclined)
    assert json.loads(error.body) == {"error": {"code": 400, "message": "your prompt: canary"}}
    assert "canary" not in str(error)


def test_a_message_that_quotes_does_not_outweigh_a_word() -> None:
    quoted = {"error": {"type": "invalid_request_error", "message": "rate limit in `overloaded`"}}
    assert isinstance(read_error(json.dumps(quoted).encode()), RequestDeclined)


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ({"error": {"code": 1}}, True),
        ({"error": None, "choices": []}, False),
        ({"error": {}}, False),
        ({"object": "error"}, True),
        ({"type": "error"}, True),
        ([{"error": "x"}], True),
        ([], False),
        ("error", False),
        (None, False),
    ],
)
def test_what_is_an_error(value, error) -> None:
    assert is_error(value) is error


SHAPES = [
    ({"detail": "Too many requests"}, FULL),
    ({"detail": [{"loc": ["body", "n"], "msg": "no", "type": "missing"}]}, THEIRS),
    ({"status": 429, "title": "Too Many"}, FULL),
    ({"statusCode": 503, "message": "no"}, FULL),
    ({"message": "Service Unavailable"}, FULL),
    ({"fault": {"faultstring": "no", "detail": {"errorcode": "policies.ratelimit.Qu"}}}, FULL),
    ({"success": False, "errors": [{"code": 1015, "message": "rate limited"}]}, FULL),
    ({"errors": {"message": "no", "type": "overloaded_error"}, "result": None}, FULL),
    ({"base_resp": {"status_code": 1002, "status_msg": "no"}, "choices": None}, FULL),
    ({"base_resp": {"status_code": 1008, "status_msg": "no"}}, UpstreamRejected),
    ({"base_resp": {"status_code": 2013, "status_msg": "no"}}, THEIRS),
    ({"code": "Throttling.RateQuota", "message": "no", "request_id": "x"}, FULL),
    ({"code": "InvalidParameter", "message": "no"}, THEIRS),
    ({"error_code": 18, "error_msg": "no"}, FULL),
    ({"error_code": 110, "error_msg": "no"}, UpstreamRejected),
    ({"code": 7, "message": "no"}, StreamError),
    ({"choices": [{"message": {"content": None, "error": {"code": 503}}}]}, FULL),
    ({"choices": [{"message": {"error": "overloaded"}, "finish_reason": "error"}]}, FULL),
]
ANSWERS = [
    {"base_resp": {"status_code": 0, "status_msg": "success"}},
    {"base_resp": {"status_code": 1002}, "choices": [{"message": {"content": "hi"}}]},
    {"code": 200, "message": "ok"},
    {"code": "", "message": ""},
    {"status": "processing", "message": "wait"},
    {"message": "hello"},
    {"message": {"content": "rate limit"}},
    {"message": "rate limit", "usage": {"prompt_tokens": 3}},
    {"code": 7, "message": "no", "usage": {"prompt_tokens": 3, "completion_tokens": 9}},
    {"detail": "x", "content": [{"text": "hi"}]},
    {"errors": [], "data": [{"embedding": [1]}]},
    {"choices": [{"message": {"content": "an error", "error": None}}]},
]


@pytest.mark.parametrize(("value", "kind"), SHAPES)
def test_an_error_without_a_member_of_that_name_is_judged_by_what_it_says(value, kind) -> None:
    """Red before: ten shapes of a refusal were booked at the hold."""
    found = error_in(json.dumps(value).encode())
    assert type(found) is kind
    assert not found.billable


@pytest.mark.parametrize("value", ANSWERS)
def test_what_has_anything_of_an_answer_is_no_error(value) -> None:
    assert error_in(json.dumps(value).encode()) is None


@pytest.mark.parametrize(
    ("choices", "kind"),
    [
        ([], None),
        ([{"finish_reason": "stop"}], None),
        ([{"finish_reason": "error"}], StreamError),
        ([{"error": {"code": 429}}], UpstreamOverloaded),
        ([{"error": {"code": 429}}, {"finish_reason": "stop"}], None),
        ([3], None),
        ({}, None),
    ],
)
def test_an_error_in_every_choice_is_the_answers(choices, kind) -> None:
    found = error_in(json.dumps({"choices": choices}).encode())
    assert (None if found is None else type(found)) is kind


@pytest.mark.parametrize(
    ("tail", "kind"),
    [
        (b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error"}}\n\n', FULL),
        (b'data: {"choices":[{"delta":{}}]}\n\ndata: {"error":{"code":400}}\n\n', THEIRS),
        (b'cut"}\n\ndata: {"error":{"code":429}}\r\n\r\ndata: [DONE]\n\n', FULL),
        (b'data: {"error":{"code":429}}\n\ndata: {"choices":[]}\n\n', None),
        (b'{"error":{"code":503}}', FULL),
        (b"data: {half", None),
        (b"", None),
    ],
)
def test_the_last_event_of_a_stream_may_be_an_error(tail, kind) -> None:
    found = error_in_events(tail)
    assert (None if found is None else type(found)) is kind


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (b'{"code":"insufficient_quota","type":"x"}', "insufficient_quota"),
        (b'{"code":null,"type":"server_error"}', "server_error"),
        (b'{"code":429}', "429"),
        (b'{"code":"sk-live key in here","type":null}', "unnamed"),
        (b'{"message":"no"}', "unnamed"),
        (b'"text"', "unnamed"),
        (b"", "unreadable"),
    ],
)
def test_only_plain_words_name_an_error(error, name) -> None:
    assert error_name(error) == name


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8)
    | st.sampled_from(["error", "overloaded", "429"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["error", "code", "type", "message", "details", "metadata", "choices"])
        | st.text(max_size=4), inner, max_size=4,
    ),
    max_leaves=12,
)  # fmt: skip


@given(_JSON)
def test_whatever_is_said_is_some_kind_of_error_and_free(value) -> None:
    raw = json.dumps(value).encode()
    error = read_error(raw)
    assert isinstance(error, BackendError)
    assert not error.billable
    error_in(raw)
    error_in_events(b"data: " + raw)
