"""Retry budget: limits further tries, so that an outage is not multiplied.

A retry that answers is free: one target failed and another had the answer. A failed retry costs
one, and each request earns a tenth: when everything is down, tries stay within 1.1 times the
requests, plus a reserve. The first success opens the budget again.
"""

SHARE = 0.1
RESERVE = 3.0


class RetryBudget:
    """The retry budget of one worker."""

    def __init__(self) -> None:
        self._balance = RESERVE

    @property
    def allowed(self) -> bool:
        return self._balance >= 1.0

    def count_request(self) -> None:
        """Count a request, which earns a tenth of a retry."""
        self._balance = min(RESERVE, self._balance + SHARE)

    def record_retry(self, *, ok: bool) -> None:
        """Record whether a retry answered."""
        change = 1.0 if ok else -1.0
        self._balance = max(-RESERVE, min(RESERVE, self._balance + change))
