"""An error in a 200 is charged for where its body counts output, or has any."""

import json

import pytest

from backends.charged_errors import (
    charge_status,
    charged_error,
    is_content_refusal,
    is_filtered,
    refusal_usage,
)
from backends.errors import (
    HeadTimeout,
    InvalidResponse,
    RequestDeclined,
    ServerError,
    StreamError,
    UpstreamBroken,
    UpstreamOverloaded,
    UpstreamRejected,
    failure_of,
)

OUTPUT = {"prompt_tokens": 8, "completion_tokens": 5}
PROMPT = {"prompt_tokens": 8, "completion_tokens": 0, "total_tokens": 8}


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ({"usage": OUTPUT}, OUTPUT),
        ({"usage": {"input_tokens": 8, "output_tokens": 5}},
         {"input_tokens": 8, "output_tokens": 5}),
        ({"usageMetadata": {"promptTokenCount": 8, "thoughtsTokenCount": 5}},
         {"promptTokenCount": 8, "thoughtsTokenCount": 5}),
        ({"usage": {"prompt_tokens": 8, "total_tokens": 13}},
         {"prompt_tokens": 8, "total_tokens": 13}),
        ([{"usage": OUTPUT}], OUTPUT),
        ({"choices": [{"usage": OUTPUT}]}, OUTPUT),
        ({"choices": [{"message": {"role": "assistant", "content": "half"}}]}, None),
        ({"choices": [{"delta": {"content": "half"}}], "usage": PROMPT}, None),
        ({"choices": [{"text": "half"}]}, None),
        ({"data": [{"embedding": [0.5]}], "usage": PROMPT}, PROMPT),
        ({"results": [{"index": 0}], "usage": PROMPT}, PROMPT),
        ({"text": "heard", "usage": {"type": "duration", "seconds": 3}},
         {"type": "duration", "seconds": 3}),
        ({"usage": {"type": "duration", "seconds": 3}}, {"type": "duration", "seconds": 3}),
    ],
)  # fmt: skip
def test_what_was_made_is_charged(body: object, kept: dict | None) -> None:
    for kind in (StreamError, RequestDeclined):
        found = charged_error(kind("no"), body)
        assert isinstance(found, UpstreamBroken)
        assert (found.billable, found.usage) == (True, kept)


def test_what_was_made_is_charged_at_the_tier_that_the_error_names() -> None:
    """Red before: a provider's priority was booked at the standard tier's prices, half of it."""
    body = {"error": {"message": "failed"}, "usage": OUTPUT, "service_tier": "priority"}
    tiered = {**OUTPUT, "service_tier": "priority"}
    assert charged_error(StreamError("no"), body).usage == tiered
    assert refusal_usage(json.dumps(body).encode()) == tiered
    own = {**body, "usage": {**OUTPUT, "service_tier": "flex"}}
    assert refusal_usage(json.dumps(own).encode()) == own["usage"]


@pytest.mark.parametrize(
    "body",
    [
        {}, None, 5, [], {"usage": PROMPT}, {"usage": None},
        {"choices": [{"message": {"role": "assistant", "content": ""}}]},
        {"choices": [], "data": [], "results": [], "text": ""},
        {"usage": {"completion_time": 5, "output_tokens": 0, "completion_tokens_per_sec": 4}},
    ],
)  # fmt: skip
def test_what_was_not_is_free(body: object) -> None:
    reported = StreamError("no")
    assert charged_error(reported, body) is reported
    assert not reported.billable


def test_an_error_that_is_charged_anyway_keeps_its_kind() -> None:
    reported = InvalidResponse("no answer")
    assert charged_error(reported, {"usage": OUTPUT}) is reported
    assert reported.usage == OUTPUT
    assert charged_error(InvalidResponse("no"), {"usage": PROMPT}).usage is None


@pytest.mark.parametrize("kind", [UpstreamOverloaded, UpstreamRejected, ServerError])
def test_a_status_is_charged_by_its_body(kind) -> None:
    """Red before: what an error of a status counted was free, or booked as a prompt."""
    free = charge_status(kind("no"), json.dumps({"error": "no", "usage": PROMPT}).encode())
    assert (free.billable, free.usage) == (kind("no").billable, None)
    counted = charge_status(kind("no"), json.dumps({"error": "no", "usage": OUTPUT}).encode())
    assert (type(counted), counted.billable, counted.usage) == (kind, True, OUTPUT)
    said = charge_status(kind("no"), b'{"choices": [{"message": {"content": "half"}}]}')
    assert (said.billable, said.usage) == (True, None)
    assert kind("no").billable == kind.charges  # of others of its kind nothing changed


@pytest.mark.parametrize("body", [b"", b"[]", b"\xff", b"[" * 5000, b'"usage"', b"{}", b"[1]"])
def test_a_body_that_says_nothing_charges_nothing(body: bytes) -> None:
    assert refusal_usage(body) is None
    assert not is_filtered(body)
    assert not charge_status(UpstreamOverloaded("no"), body).billable


@pytest.mark.parametrize(
    ("error", "filtered"),
    [
        ({"code": "content_filter"}, True),
        ({"code": "400", "innererror": {"code": "ResponsibleAIPolicyViolation"}}, True),
        ({"code": "content_policy_violation"}, False),
        ({"message": "content_filter"}, False),
        ({"code": ["content_filter"]}, False),
        ("content_filter", False),
    ],
)
def test_a_filter_is_known_by_its_code(error: object, filtered: bool) -> None:
    assert is_filtered(json.dumps({"error": error}).encode()) is filtered


@pytest.mark.parametrize(
    ("error", "refused"),
    [
        ({"code": "content_filter"}, True),
        ({"type": "moderation_blocked"}, True),
        ({"status": "RESPONSIBLE_AI"}, True),
        ({"code": "400", "innererror": {"code": "ResponsibleAIPolicyViolation"}}, True),
        ({"innererror": "content_filter"}, False),
        ({"message": "Output blocked by content filtering policy"}, True),
        ({"message": "It said: output blocked by content filtering policy"}, False),
        ({"message": "It is triggering Azure's content management policy."}, True),
        ({"message": "x" * 490 + " triggering the content management policy"}, False),
        ({"message": "no such model", "code": "model_not_found"}, False),
        ("Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO", True),
        ({"message": "Content Exists Risk", "code": "invalid_request_error"}, True),
        ({"message": "You said: Content Exists Risk"}, False),
        ({"code": "invalid_prompt", "message": "no"}, True),
        ({"type": "invalid_request_prompt", "message": "Prompt contains 9 tokens"}, False),
        ({"code": 403, "message": "X requires moderation and your input was flagged"}, True),
        ({"code": "1301", "message": "系统检测到输入或生成内容可能包含不安全或敏感内容"}, True),
        ({"message": None, "code": None}, False),
        ({"message": ["content_filter"], "code": ["content_filter"]}, False),
        ({}, False),
        ("content_filter", False),
        (None, False),
    ],
)
def test_a_content_refusal_is_known_by_its_words_or_by_a_vendors_own_sentence(
    error: object, refused: bool
) -> None:
    assert is_content_refusal(json.dumps({"error": error}).encode()) is refused
    assert is_content_refusal(json.dumps([{"error": error}]).encode()) is refused


@pytest.mark.parametrize("body", [b"", b"[]", b"5", b"\xff", b"{}"])
def test_a_body_that_says_nothing_is_no_content_refusal(body: bytes) -> None:
    assert is_content_refusal(body) is False


def test_a_deadline_of_the_targets_own_is_no_fault_of_the_request() -> None:
    assert failure_of(408) is HeadTimeout
    assert [failure_of(status) for status in (429, 503, 529)] == [UpstreamOverloaded] * 3
    assert [failure_of(status) for status in (500, 502, 504)] == [ServerError] * 3
