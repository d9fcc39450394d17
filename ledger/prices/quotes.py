"""What a price asks of a request before it is sent: text in, text out, in the standard tier.

The same amounts as `cost_pusd` and `bound_pusd`, asked again and again: where one pair of rates
holds for every prompt (no schedule, no uplift), which is the usual price, they are found once.
"""

from ledger.journals.records import TokenCounts
from ledger.prices.rates import (
    Price,
    SoundPlace,
    bound_pusd,
    cost_pusd,
    dearest_input,
    dearest_output,
)
from ledger.prices.unread_terms import unlimited_terms


class PriceQuote:
    """One price, ready to multiply."""

    __slots__ = (
        "_any_prompt", "_dearest_input", "_dearest_output", "_fees_bound", "_input", "_output",
        "_request", "_unread", "price", "unread",
    )  # fmt: skip

    def __init__(self, price: Price, unread: tuple[str, ...] = ()) -> None:
        """`unread`: names of charges that the price does not say (`PriceBook.unread_terms`)."""
        self.price = price
        self.unread = unread
        self._unread: dict[frozenset[str], tuple[str, ...]] = {}
        terms, rates = price.terms, price.terms.rates
        self._any_prompt = not (terms.schedules or terms.uplift_ppm)
        self._request = terms.request_pusd
        self._fees_bound = terms.request_pusd + terms.searches_limit * terms.search_pusd
        self._input, self._output = rates.input, rates.output
        self._dearest_input = dearest_input(rates, audio=False)
        self._dearest_output = dearest_output(rates, audio=False)

    def cost_pusd(self, tokens: TokenCounts) -> int:
        """What input and output tokens cost; the other kinds are not looked at."""
        if self._any_prompt:
            return tokens.input * self._input + tokens.output * self._output + self._request
        return cost_pusd(TokenCounts(input=tokens.input, output=tokens.output), self.price)

    def bound_pusd(
        self, prompt_tokens: int, output_tokens: int, *, audio: SoundPlace = False
    ) -> int:
        """The most that so many tokens can cost, whatever of them is cached, written or thought.

        `output_tokens` are those of all choices; `audio`: some may be of sound, or
        those of the output alone.
        """
        if self._any_prompt and not audio:
            return (
                prompt_tokens * self._dearest_input
                + output_tokens * self._dearest_output
                + self._fees_bound
            )
        return bound_pusd(
            self.price,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            audio=audio,
        )

    def unlimited_terms(self, features: frozenset[str]) -> tuple[str, ...]:
        """Names of what is unread and may be charged to a request with these features."""
        known = self._unread.get(features)
        if known is None:
            known = self._unread[features] = unlimited_terms(self.unread, features)
        return known
