"""The budget of retries elsewhere, so that an outage is not multiplied.

A further try that answers costs nothing: one target failed and another one had the answer. One
that fails too is paid for, and each request brings a tenth: when everything is down, tries and
requests stay within 1.1 of each other, beyond a reserve. The first success opens it again.
"""

SHARE = 0.1
RESERVE = 3.0


class RetryBudget:
    """One worker's account."""

    def __init__(self) -> None:
        self._balance = RESERVE

    @property
    def allowed(self) -> bool:
        return self._balance >= 1.0

    def count_request(self) -> None:
        """A request came."""
        self._balance = min(RESERVE, self._balance + SHARE)

    def record_retry(self, *, ok: bool) -> None:
        """A further try answered, or failed."""
        change = 1.0 if ok else -1.0
        self._balance = max(-RESERVE, min(RESERVE, self._balance + change))
