"""Time to transfer a prompt's KV between two engines: configured, then learned.

A worker observes the time from the end of the prefill to the first token elsewhere, less what the
answering engine was forecast to need for that token. It corrects the configured time by a factor,
slowly and within bounds. A single slow transfer may be due to a queue and must not stop further
transfers.
"""

from dataclasses import dataclass

WEIGHT = 0.1  # of one observation
LEAST, MOST = 0.1, 20.0  # of the stated time


@dataclass(slots=True)
class TransferTimes:
    """Transfer times of one pool in one worker: `setup_s` per transfer, `token_s` per token."""

    setup_s: float
    token_s: float
    factor: float = 1.0
    observations: int = 0

    @property
    def expected(self) -> tuple[float, float]:
        """Return the expected seconds per transfer and per token."""
        return self.setup_s * self.factor, self.token_s * self.factor

    def observe(self, tokens: int, took_s: float) -> None:
        """Record that a transfer of `tokens` took `took_s` seconds."""
        stated_s = self.setup_s + self.token_s * tokens
        if stated_s <= 0.0 or not took_s > 0.0:
            return
        seen = min(MOST, max(LEAST, took_s / stated_s))
        self.observations += 1
        weight = max(WEIGHT, 1.0 / self.observations)
        self.factor += weight * (seen - self.factor)
