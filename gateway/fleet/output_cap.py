"""The longest answer when a request names no limit and money does.

The cap is what the money affords at the target's price, and never more than the model gives: the
hold is then never more than the room, and no answer is cut while the budget could pay for it.
Less than `LEAST_TOKENS` is no answer worth its price: the bound of that many is what a filter
refuses.
"""

from collections.abc import Callable
from dataclasses import dataclass

LEAST_TOKENS = 256  # a paragraph or two


@dataclass(frozen=True, slots=True)
class OutputCap:
    """`tokens` are asked for upstream (`None`: nothing is); `pusd` bounds the cost with them."""

    tokens: int | None
    pusd: int


@dataclass(frozen=True, slots=True)
class OutputCapRule:
    """One request at one target. `bound_of(tokens)` never falls with the tokens of a choice.

    `unasked_tokens`: what the target itself keeps to when it is asked for nothing (own engines).
    """

    bound_of: Callable[[int], int]
    limit_tokens: int
    unasked_tokens: int | None = None

    def cap(self, money_pusd: int | None) -> OutputCap:
        """The longest answer that the money affords; `None`: no limit on money."""
        most = self.limit_tokens if self.unasked_tokens is None else self.unasked_tokens
        if money_pusd is None:
            return OutputCap(None, self.bound_of(most))
        if self.unasked_tokens is not None:
            pusd = self.bound_of(most)
            if pusd <= money_pusd:
                return OutputCap(None, pusd)
        tokens = self._affordable(money_pusd)
        return OutputCap(tokens, self.bound_of(tokens))

    def _affordable(self, money_pusd: int) -> int:
        """The most tokens whose bound fits, between the least and the limit, by bisection."""
        if self.bound_of(self.limit_tokens) <= money_pusd:
            return self.limit_tokens
        fits, beyond = min(LEAST_TOKENS, self.limit_tokens), self.limit_tokens
        if self.bound_of(fits) > money_pusd:
            return fits
        while beyond - fits > 1:
            middle = (fits + beyond) // 2
            if self.bound_of(middle) <= money_pusd:
                fits = middle
            else:
                beyond = middle
        return fits
