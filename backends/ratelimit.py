"""Parser of a provider's rate limit headers: remaining requests and tokens, and reset.

OpenAI-compatible providers send a reset as a duration (`6m0s`), Anthropic as a time (RFC 3339). A
limit that refills evenly, as OpenAI's and Anthropic's, sends when it is full again, so its period
is a minute, an hour or a day at any remaining amount. If the values do not give one of these,
nothing is assumed to refill before the reset.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)?")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, None: 1.0}
_LONGEST_WAIT_S = 3600.0
_PERIODS_S = (60.0, 3600.0, 86_400.0)
_PERIOD_ERROR = 0.05  # tolerance for rounding to whole seconds and thousands of tokens
_OPENAI_LEFT = frozenset(("x-ratelimit-remaining-requests", "x-ratelimit-remaining-tokens"))
_PREFIXES = ("x-ratelimit-", "anthropic-ratelimit-")


@dataclass(frozen=True, slots=True)
class Allowance:
    """One limit: its size, the remaining part, seconds to its reset; `None` if not sent."""

    limit: int | None = None
    left: int | None = None
    reset_s: float | None = None

    @property
    def refill_per_s(self) -> float:
        """Return how much refills per second until the reset, 0 if unknown."""
        if self.limit is None or self.left is None or not self.reset_s:
            return 0.0
        spent = self.limit - self.left
        if spent <= 0:
            return 0.0
        period_s = self.reset_s * self.limit / spent
        if any(abs(period_s - value) <= _PERIOD_ERROR * value for value in _PERIODS_S):
            return spent / self.reset_s
        return 0.0


@dataclass(frozen=True, slots=True)
class RateLimitHeaders:
    requests: Allowance = field(default_factory=Allowance)
    tokens: Allowance = field(default_factory=Allowance)


def parse_rate_limit(headers: Mapping[str, str], *, wall_s: float) -> RateLimitHeaders | None:
    """Return the limits in lower-case headers, `None` if they have no remaining amount."""
    if "anthropic-ratelimit-requests-remaining" in headers:
        tokens = _anthropic(headers, "tokens", wall_s)  # of whichever token limit is tightest
        if tokens.left is None:
            tokens = _anthropic(headers, "input-tokens", wall_s)
        return RateLimitHeaders(_anthropic(headers, "requests", wall_s), tokens)
    if _OPENAI_LEFT.isdisjoint(headers):  # of most engines, and of some providers
        return None
    found = RateLimitHeaders(_openai(headers, "requests"), _openai(headers, "tokens"))
    return None if found.requests.left is None and found.tokens.left is None else found


def rate_limit_headers(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that `parse_rate_limit` reads."""
    return {name: value for name, value in headers.items() if name.startswith(_PREFIXES)}


def parse_retry_after(headers: Mapping[str, str], *, wall_s: float) -> float | None:
    """Return seconds to wait, from `retry-after-ms` or `retry-after` (seconds or a date)."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return min(milliseconds / 1000, _LONGEST_WAIT_S)
    value = headers.get("retry-after")
    if value is None:
        return None
    seconds = _number(value)
    if seconds is None:
        try:
            seconds = parsedate_to_datetime(value).timestamp() - wall_s
        except (ValueError, OverflowError):
            return None
    return min(max(seconds, 0.0), _LONGEST_WAIT_S)


def parse_duration(text: str | None) -> float | None:
    """Return seconds of a duration: `6m0s`, `2m59.56s`, `120ms` or plain seconds.

    `None` for an invalid text.
    """
    if text is None or not text or len(text) > 32:
        return None
    total, position = 0.0, 0
    while position < len(text):
        match = _DURATION.match(text, position)
        if match is None:
            return None
        total += float(match[1]) * _UNIT_S[match[2]]
        position = match.end()
    return total


def _openai(headers: Mapping[str, str], kind: str) -> Allowance:
    return Allowance(
        _count(headers.get(f"x-ratelimit-limit-{kind}")),
        _count(headers.get(f"x-ratelimit-remaining-{kind}")),
        parse_duration(headers.get(f"x-ratelimit-reset-{kind}")),
    )


def _anthropic(headers: Mapping[str, str], kind: str, wall_s: float) -> Allowance:
    return Allowance(
        _count(headers.get(f"anthropic-ratelimit-{kind}-limit")),
        _count(headers.get(f"anthropic-ratelimit-{kind}-remaining")),
        _seconds_until(headers.get(f"anthropic-ratelimit-{kind}-reset"), wall_s),
    )


def _seconds_until(text: str | None, wall_s: float) -> float | None:
    """Return seconds to a time with a zone, `None` for an invalid text."""
    try:
        at = datetime.fromisoformat(text or "")
    except ValueError:
        return None
    return None if at.tzinfo is None else max(0.0, at.timestamp() - wall_s)


def _count(text: str | None) -> int | None:
    number = _number(text)
    return None if number is None else int(number)


def _number(text: str | None) -> float | None:
    return float(text) if text and re.fullmatch(r"\d{1,64}(\.\d{1,6})?", text.strip()) else None
