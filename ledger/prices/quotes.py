"""The price of a request before it is sent: text in, text out, in the service tier it asks for.

The same amounts as `cost_pusd` and `bound_pusd`, asked again and again: where one pair of rates
holds for every prompt (no schedule, no uplift), which is the usual price, they are found once.
"""

from msgspec.structs import replace

from ledger.journals.records import TokenCounts
from ledger.prices.modellimits import ModelLimits
from ledger.prices.picture_tokens import rule_of_model
from ledger.prices.prompt_caches import PromptCacheRule, cache_rule_of
from ledger.prices.rates import (
    STANDARD,
    WITHOUT_SOUND,
    Price,
    ReachableMedia,
    bound_pusd,
    cost_pusd,
    dearest_input,
    dearest_output,
)
from ledger.prices.unread_terms import OF_COUNTED_SEARCHES, unlimited_terms


class PriceQuote:
    """One price, ready to multiply."""

    __slots__ = (
        "_any_prompt", "_dearest_input", "_dearest_output", "_dearest_text", "_fees_bound",
        "_input", "_model", "_output", "_picture_rule", "_request", "_tier", "_unread",
        "cache_rule", "charges_writes", "context_tokens", "limits", "price", "unread",
    )  # fmt: skip

    def __init__(
        self,
        price: Price,
        unread: tuple[str, ...] = (),
        limits: ModelLimits | None = None,
        tier: str = STANDARD,
    ) -> None:
        """`unread`: names of charges that the price does not say (`PriceBook.unread_terms`).

        `limits` are its model's, None where nobody states them. Costs are those of the `tier`,
        which the price must list; bounds are of any tier.
        """
        self.price = price
        self._tier = tier
        self.limits = limits
        self._picture_rule = picture_rule_of(price)
        self._model = _model_of(price)
        self.context_tokens = 0 if limits is None else limits.stated_context  # 0: nobody states it
        self.unread = unread
        self._unread: dict[frozenset[str], tuple[str, ...]] = {}
        terms, rates = price.terms, price.terms.rates
        self._any_prompt = not (terms.schedules or terms.uplift_ppm)
        self._request = terms.request_pusd
        self._fees_bound = terms.request_pusd + terms.searches_limit * terms.search_pusd
        self._input, self._output = rates.input, rates.output
        self.cache_rule = cache_rule(price)
        self.charges_writes = rates.cache_write > rates.input
        self._dearest_input = dearest_input(rates, audio=False)
        self._dearest_output = dearest_output(rates, audio=False, images=True)
        self._dearest_text = dearest_output(rates, audio=False, images=False)

    def limit_searches(self, most: int) -> "PriceQuote":
        """Return the quote of a request that lets its target make so many searches at most.

        The price's own limit holds as well. Without a price of a search nothing is known of more.
        """
        terms = self.price.terms
        if not terms.search_pusd or 0 < terms.searches_limit <= most:
            return self
        limited = replace(terms, searches_limit=most)
        unread = tuple(name for name in self.unread if name not in OF_COUNTED_SEARCHES)
        return PriceQuote(replace(self.price, terms=limited), unread, self.limits, self._tier)

    def cost_pusd(self, tokens: TokenCounts) -> int:
        """Return the cost of input and output tokens in pico-USD; other kinds are left out."""
        if self._any_prompt:
            return tokens.input * self._input + tokens.output * self._output + self._request
        return self.cached_cost_pusd(TokenCounts(input=tokens.input, output=tokens.output))

    def cached_cost_pusd(self, tokens: TokenCounts) -> int:
        """Return the cost of a prompt with cached and written tokens, and of its output."""
        return cost_pusd(tokens, self.price, tier=self._tier)

    def bound_pusd(
        self,
        prompt_tokens: int,
        output_tokens: int,
        *,
        media: ReachableMedia = WITHOUT_SOUND,
    ) -> int:
        """The most that so many tokens can cost, whatever of them is cached, written or thought.

        `output_tokens` are those of all choices; `media`: kinds beside text that may be among them.
        """
        if self._any_prompt and not (media.audio_output or media.audio_input):
            return (
                prompt_tokens * self._dearest_input
                + output_tokens * (self._dearest_output if media.images else self._dearest_text)
                + self._fees_bound
            )
        return bound_pusd(
            self.price,
            prompt_tokens=prompt_tokens,
            output_tokens=output_tokens,
            media=media,
        )

    def picture_rule(self, upstream_model: str) -> str:
        """Return how a target counts pictures of a prompt, "" where nobody says so.

        A target may borrow the price of another model (`prices_as`): then it counts as the price
        states, and never as the lender's name lets one think.
        """
        stated = self.price.terms.image_rule
        borrowed = not stated and _last_name(upstream_model) != self._model
        return "" if borrowed else self._picture_rule

    def unlimited_terms(self, features: frozenset[str]) -> tuple[str, ...]:
        """Return names of what is unread and may be charged to a request with these features."""
        known = self._unread.get(features)
        if known is None:
            known = self._unread[features] = unlimited_terms(self.unread, features)
        return known


def cache_rule(price: Price) -> PromptCacheRule | None:
    """Return the rule of the model's prompt cache, None where what it has is no cheaper."""
    rates = price.terms.rates
    return cache_rule_of(price.name.partition("#")[0]) if rates.cached < rates.input else None


def picture_rule_of(price: Price) -> str:
    """Return how pictures of a prompt are counted: as the price states, else by its model."""
    return price.terms.image_rule or rule_of_model(price.name.partition("#")[0])


def _model_of(price: Price) -> str:
    return _last_name(price.name.partition("#")[0])


def _last_name(model: str) -> str:
    """Return the model's own name, without who serves it."""
    return model.rpartition("/")[2]
