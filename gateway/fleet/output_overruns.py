"""Output that targets bill beyond the limit they were told, as hidden thoughts are by some.

A hold is made of the limit and of what its target was seen to add: twice the most of late, so that
the next answer is held for what it may cost. One honest answer within its limit lowers nothing;
what was seen is forgotten after a week without another. A price file may state the same
(`reasoning: outside`): the larger of both counts.
A target that wrote on because it does not know the newer name of the limit is no such target: it is
told by both names from then on.
"""

from ledger.prices.modellimits import ModelLimits
from ledger.prices.rates import PriceTerms

FORGOTTEN_S = 7 * 24 * 3600.0
MARGIN = 2
TARGETS_LIMIT = 4096  # that are remembered
OVERRUN_LIMIT = 200_000  # tokens: no model answers at greater length (2026-11)


class OutputOverruns:
    """Per target, in tokens of one choice. A worker's own."""

    __slots__ = ("_seen", "_told_twice")

    def __init__(self) -> None:
        self._told_twice: dict[str, None] = {}  # in the order in which they were seen
        self._seen: dict[str, tuple[int, float]] = {}  # the most, and when something was seen last

    def observe(self, target: str, tokens: int, now_s: float) -> None:
        """Take note of an answer that had so many tokens more than its limit."""
        most, _ = self._seen.pop(target, (0, now_s))
        if len(self._seen) >= TARGETS_LIMIT:
            del self._seen[next(iter(self._seen))]
        self._seen[target] = (max(most, min(tokens, OVERRUN_LIMIT)), now_s)

    def tell_twice(self, target: str) -> None:
        """Take note of a target that does not know the newer name of the limit."""
        if len(self._told_twice) >= TARGETS_LIMIT:
            del self._told_twice[next(iter(self._told_twice))]
        self._told_twice[target] = None

    def is_told_twice(self, target: str) -> bool:
        return target in self._told_twice

    def allowance(self, target: str, now_s: float) -> int:
        """How many tokens beside its limit an answer is held for."""
        if not self._seen:
            return 0
        most, seen_s = self._seen.get(target, (0, now_s))
        return min(MARGIN * most, OVERRUN_LIMIT) if now_s - seen_s < FORGOTTEN_S else 0


def stated_overrun(terms: PriceTerms, limits: ModelLimits | None, prompt_tokens: int) -> int:
    """Return the tokens of a choice that the price says are billed beside its limit.

    Where it states no number, a model thinks at most as long as its longest answer.
    """
    if not terms.reasoning_outside:
        return 0
    if terms.reasoning_limit:
        return terms.reasoning_limit
    return OVERRUN_LIMIT if limits is None else limits.max_output_tokens(prompt_tokens)
