"""Rate-limit headers: two dialects, resets in three forms, evenly refilled limits told apart."""

import pytest

from backends.ratelimit import (
    Allowance,
    RateLimitHeaders,
    parse_duration,
    parse_rate_limit,
    parse_retry_after,
    rate_limit_headers,
)

WALL_S = 1_700_000_000.0  # 2023-11-14 22:13:20 UTC


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "12"}, 12.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:30 GMT"}, 10.0),
        ({"retry-after": "Tue, 14 Nov 2023 22:13:00 GMT"}, 0.0),
        ({"retry-after": "99999999"}, 3600.0),
        ({"retry-after": "9" * 20}, 3600.0),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": ""}, None),
    ],
)
def test_retry_after(headers, seconds):
    assert parse_retry_after(headers, wall_s=WALL_S) == seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1s", 1.0), ("6m0s", 360.0), ("2m59.56s", 179.56), ("120ms", 0.12), ("1h2m", 3720.0),
     ("17", 17.0), ("", None), (None, None), ("x", None), ("1y", None), ("1" * 40, None)],
)  # fmt: skip
def test_durations(text, seconds):
    assert parse_duration(text) == pytest.approx(seconds)


OPENAI = {
    "x-ratelimit-limit-requests": "500",
    "x-ratelimit-remaining-requests": "499",
    "x-ratelimit-reset-requests": "120ms",
    "x-ratelimit-limit-tokens": "30000",
    "x-ratelimit-remaining-tokens": "banana",
}
ANTHROPIC = {
    "anthropic-ratelimit-requests-limit": "50",
    "anthropic-ratelimit-requests-remaining": "0",
    "anthropic-ratelimit-requests-reset": "2023-11-14T22:14:20Z",
    "anthropic-ratelimit-input-tokens-limit": "50000",
    "anthropic-ratelimit-input-tokens-remaining": "49000",
    "anthropic-ratelimit-input-tokens-reset": "2023-11-14T22:13:19+00:00",
}


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({}, None),
        ({"x-ratelimit-limit-requests": "500"}, None),
        (OPENAI, RateLimitHeaders(Allowance(500, 499, 0.12), Allowance(30000, None, None))),
        ({"x-ratelimit-remaining-tokens": "7"}, RateLimitHeaders(tokens=Allowance(left=7))),
        (ANTHROPIC, RateLimitHeaders(Allowance(50, 0, 60.0), Allowance(50000, 49000, 0.0))),
        (
            {**ANTHROPIC, "anthropic-ratelimit-tokens-remaining": "5",
             "anthropic-ratelimit-tokens-reset": "2023-11-14T22:14:20"},
            RateLimitHeaders(Allowance(50, 0, 60.0), Allowance(None, 5, None)),
        ),
    ],
)  # fmt: skip
def test_both_dialects(headers, said):
    assert parse_rate_limit(headers, wall_s=WALL_S) == said
    kept = rate_limit_headers({**headers, "content-type": "text/plain", "set-cookie": "x"})
    assert kept == headers


@pytest.mark.parametrize(
    ("limit", "left", "reset_s", "refill_per_s"),
    [
        (60, 59, 1.0, 1.0),  # OpenAI's own example
        (10_000, 0, 60.0, 10_000 / 60),
        (14_400, 14_370, 179.56, 30 / 179.56),  # by the day
        (50, 0, 59.0, 50 / 59),  # told in whole seconds
        (50, 0, 31.0, 0.0),  # a window that starts over in 31 s
        (50, 49, 31.0, 0.0),
        (50, 50, 60.0, 0.0),
        (50, None, 60.0, 0.0),
        (50, 0, None, 0.0),
        (50, 0, 0.0, 0.0),
        (0, 0, 60.0, 0.0),
    ],
)
def test_what_comes_back_evenly(limit, left, reset_s, refill_per_s):
    assert Allowance(limit, left, reset_s).refill_per_s == pytest.approx(refill_per_s)
