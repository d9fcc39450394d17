"""The price of a text request before it is sent, in the service tier that it requests.

Amounts equal those of `cost_pusd` and `bound_pusd`. Most prices have no schedule and no surcharge;
for those, the rates are looked up once per quote.
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
    """A price with its rates looked up once, for many cost estimates."""

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
        """Look up the rates of `price`.

        `unread` names charges that the price does not cover (`PriceBook.unread_terms`). `limits`
        are the model's, `None` if unknown. Costs are those of `tier`, which the price must list;
        bounds cover every tier.
        """
        self.price = price
        self._tier = tier
        self.limits = limits
        self._picture_rule = picture_rule_of(price)
        self._model = _model_of(price)
        self.context_tokens = 0 if limits is None else limits.stated_context  # 0: unknown
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
        """Return the quote for a request that allows its target at most `most` searches.

        A lower limit of the price stays. A price without a search price is returned unchanged.
        """
        terms = self.price.terms
        if not terms.search_pusd or 0 < terms.searches_limit <= most:
            return self
        limited = replace(terms, searches_limit=most)
        unread = tuple(name for name in self.unread if name not in OF_COUNTED_SEARCHES)
        return PriceQuote(replace(self.price, terms=limited), unread, self.limits, self._tier)

    def cost_pusd(self, tokens: TokenCounts) -> int:
        """Return the cost of input and output tokens in pico-USD; other kinds are ignored."""
        if self._any_prompt:
            return tokens.input * self._input + tokens.output * self._output + self._request
        return self.cached_cost_pusd(TokenCounts(input=tokens.input, output=tokens.output))

    def cached_cost_pusd(self, tokens: TokenCounts) -> int:
        """Return the cost of a prompt with cached and cache-write tokens, and its output."""
        return cost_pusd(tokens, self.price, tier=self._tier)

    def bound_pusd(
        self,
        prompt_tokens: int,
        output_tokens: int,
        *,
        media: ReachableMedia = WITHOUT_SOUND,
    ) -> int:
        """Return the maximum cost in pico-USD, whichever kinds the tokens turn out to be.

        `output_tokens` is the sum over all choices; `media` are the kinds other than text that the
        request may be charged for.
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
        """Return the rule by which a target counts pictures of a prompt, "" if unknown.

        A target that uses another model's price (`prices_as`) counts by the rule that the price
        states, never by the rule of the other model's name.
        """
        stated = self.price.terms.image_rule
        borrowed = not stated and _last_name(upstream_model) != self._model
        return "" if borrowed else self._picture_rule

    def unlimited_terms(self, features: frozenset[str]) -> tuple[str, ...]:
        """Return unread charges that leave a request with these features without a bound."""
        known = self._unread.get(features)
        if known is None:
            known = self._unread[features] = unlimited_terms(self.unread, features)
        return known


def cache_rule(price: Price) -> PromptCacheRule | None:
    """Return the model's prompt cache rule, `None` if cached tokens are not cheaper."""
    rates = price.terms.rates
    return cache_rule_of(price.name.partition("#")[0]) if rates.cached < rates.input else None


def picture_rule_of(price: Price) -> str:
    """Return the rule for pictures of a prompt: the price's own, else the model's."""
    return price.terms.image_rule or rule_of_model(price.name.partition("#")[0])


def _model_of(price: Price) -> str:
    return _last_name(price.name.partition("#")[0])


def _last_name(model: str) -> str:
    """Return the model's name without its provider."""
    return model.rpartition("/")[2]
