"""Output cap of a request without `max_tokens` where a budget or cost cap applies.

The cap is the longest output that the money affords at the target's price, at most the model's
limit. So the hold never exceeds the remaining budget, and no affordable answer is cut. A cap below
`LEAST_TOKENS` is not useful: the cost bound is then that of `LEAST_TOKENS`, and a filter rejects
the candidate.
"""

from collections.abc import Callable
from dataclasses import dataclass

LEAST_TOKENS = 256  # one or two paragraphs


@dataclass(frozen=True, slots=True)
class OutputCap:
    """Output cap: `tokens` to send upstream (`None`: none), and the cost bound in pico-USD."""

    tokens: int | None
    pusd: int


@dataclass(frozen=True, slots=True)
class OutputCapRule:
    """Rule that computes the output cap of one request at one target.

    `bound_of(tokens)` returns the cost bound and never decreases with the tokens of a choice.
    `unasked_tokens` is the target's own limit if the request names none (own engines).
    """

    bound_of: Callable[[int], int]
    limit_tokens: int
    unasked_tokens: int | None = None

    def cap(self, money_pusd: int | None) -> OutputCap:
        """Return the longest output that the money affords; `None` means no limit on money."""
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
        """Return the most tokens whose cost bound fits, at least `LEAST_TOKENS`, by bisection."""
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
