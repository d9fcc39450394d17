"""Learns whether a target's model thinks unseen, and how fast it can be.

Learned from answers that ended with reported usage, by target and for this worker alone. Only what
is bounded is kept: a rate has a maximum and falls with each answer that is slower, and the oldest
of too many targets is forgotten. A rate that is too high costs nothing but a bound.
"""

from ledger.journals.records import TokenCounts

TARGETS_LIMIT = 1024
RATE_LIMIT_PER_S = 20_000.0  # above any model's; what came in one burst would be endless
KEEP = 0.99  # of the rate, for each slower answer: one fast answer in 70 keeps half of it
LEAST_S = 0.01  # a clock's noise is no time to think in
TEXT_BYTES_PER_TOKEN = 2  # fewer than any text of words has: what was shown is not called hidden


class HiddenOutput:
    """One per worker."""

    def __init__(self) -> None:
        self._rates: dict[str, float] = {}  # tokens per second, by target
        self._hiding: set[str] = set()

    def observe(
        self,
        target: str,
        tokens: TokenCounts,
        *,
        said_bytes: int,
        first_s: float | None,
        duration_s: float,
    ) -> None:
        """Take an answer that ended; `first_s`: until its first content, of a stream."""
        rate = tokens.output / max(duration_s, LEAST_S)
        if first_s is not None:
            told = said_bytes // TEXT_BYTES_PER_TOKEN
            hidden = min(tokens.reasoning, max(0, tokens.output - told))
            if hidden:
                rate = max(rate, hidden / max(first_s, LEAST_S))
                self._hiding.add(target)
        known = self._rates.pop(target, 0.0) * KEEP
        if len(self._rates) >= TARGETS_LIMIT:
            oldest = next(iter(self._rates))
            del self._rates[oldest]
            self._hiding.discard(oldest)
        self._rates[target] = min(max(rate, known), RATE_LIMIT_PER_S)

    def hides(self, target: str) -> bool:
        """Whether an answer of this target had reasoning that was not shown."""
        return target in self._hiding

    def tokens_per_s(self, target: str) -> float | None:
        """Return the fastest rate that was seen lately, `None` before the first answer."""
        return self._rates.get(target)
