"""The time that a prompt's KV takes between two engines: as stated, then as observed.

What a worker sees is the time from the end of the reading to the first word elsewhere: that is the
move and one step. It corrects the stated figure by a factor, slowly and within bounds: one slow
move may be a queue's, and is no reason to never move again.
"""

from dataclasses import dataclass

WEIGHT = 0.1  # of one observation
LEAST, MOST = 0.1, 20.0  # of the stated time


@dataclass(slots=True)
class TransferTimes:
    """One pool's, in one worker: `setup_s` for each move, `token_s` for each token of it."""

    setup_s: float
    token_s: float
    factor: float = 1.0
    observations: int = 0

    @property
    def expected(self) -> tuple[float, float]:
        """Return what is expected now, for a move and for a token."""
        return self.setup_s * self.factor, self.token_s * self.factor

    def observe(self, tokens: int, took_s: float) -> None:
        """A move of so many tokens took so long, as far as that can be told."""
        stated_s = self.setup_s + self.token_s * tokens
        if stated_s <= 0.0 or not took_s > 0.0:
            return
        seen = min(MOST, max(LEAST, took_s / stated_s))
        self.observations += 1
        weight = max(WEIGHT, 1.0 / self.observations)
        self.factor += weight * (seen - self.factor)
