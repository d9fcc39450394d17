"""A provider's rate limit: requests and tokens per minute, refilled evenly, with headers."""

import math

MINUTE_S = 60.0


class Quota:
    """Two token buckets, for requests and tokens; `now_s` is any monotonic clock."""

    def __init__(self, requests_per_minute: int, tokens_per_minute: int) -> None:
        self._limits = (requests_per_minute, tokens_per_minute)
        self._left = [float(requests_per_minute), float(tokens_per_minute)]
        self._at_s: float | None = None

    def spend(self, tokens: int, now_s: float) -> bool:
        """Spend one request and its tokens, or nothing. Return whether they were spent."""
        self._refill(now_s)
        if self._left[0] < 1 or self._left[1] < tokens:
            return False
        self._left[0] -= 1
        self._left[1] -= tokens
        return True

    def wait_s(self, now_s: float) -> int:
        """Return whole seconds until a request and some tokens are available again."""
        self._refill(now_s)
        waits = [
            (1 - left) * MINUTE_S / limit
            for left, limit in zip(self._left, self._limits, strict=True)
        ]
        return max(1, math.ceil(max(waits)))

    def headers(self, now_s: float) -> tuple[tuple[bytes, bytes], ...]:
        """Return OpenAI's headers of the remaining amounts and the time until they are full."""
        self._refill(now_s)
        found: list[tuple[str, str]] = []
        for kind, limit, left in zip(("requests", "tokens"), self._limits, self._left, strict=True):
            full_ms = math.ceil((limit - left) * MINUTE_S * 1000 / limit)
            found += [
                (f"limit-{kind}", str(limit)),
                (f"remaining-{kind}", str(int(left))),
                (f"reset-{kind}", f"{full_ms}ms"),
            ]
        return tuple((f"x-ratelimit-{name}".encode(), value.encode()) for name, value in found)

    def _refill(self, now_s: float) -> None:
        passed_s = 0.0 if self._at_s is None else max(0.0, now_s - self._at_s)
        self._at_s = now_s
        self._left = [
            min(float(limit), left + limit * passed_s / MINUTE_S)
            for limit, left in zip(self._limits, self._left, strict=True)
        ]
