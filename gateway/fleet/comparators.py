"""Costs that comparators would charge, including the effect of their prompt caches.

The avoided cost of an own engine's answer is the bill of a world in which the whole session went to
that API. Prompt tokens of earlier turns therefore count as cached, wherever those turns were
answered. They are scaled by the share that this API charged as cached in its observed answers.
Without observations the share is 0, unless the provider promises caching.
"""

from collections.abc import Sequence
from typing import NamedTuple

from gateway.fleet.provider_caches import (
    NOTHING_CACHED,
    CachedPrompt,
    CacheForecast,
    is_for_an_hour,
)
from gateway.kinds.spec import KindUnits
from ledger.journals.records import TokenCounts
from ledger.prices.quotes import PriceQuote, cache_rule
from ledger.prices.rates import Price, cost_pusd
from router.types import RoutingRequest

_ELSEWHERE = "~"  # prefix of a comparator's name in the cache table: prompts sent anywhere


class Comparator(NamedTuple):
    """A price to compare with, and the part of the prompt that its provider would have cached.

    `estimate` is the prompt's estimated tokens, to which `hit` refers.
    """

    price: Price
    hit: CachedPrompt = NOTHING_CACHED
    estimate: int = 0
    for_an_hour: bool = False

    def split_prompt(self, tokens: TokenCounts) -> TokenCounts:
        """Return the used tokens, with the prompt split into the kinds that this provider charges.

        Tokens that were read from another cache, such as an own engine's, are not cached here.
        """
        hit, prompt = self.hit, tokens.prompt
        if tokens.input == prompt and not (hit.expected or hit.written):
            return tokens
        cached = written = 0
        if self.estimate:
            cached = min(prompt, hit.expected * prompt // self.estimate)
            written = prompt - cached if hit.written else 0
        short, long = (0, written) if self.for_an_hour else (written, 0)
        names = TokenCounts.__struct_fields__[4:]
        return TokenCounts(
            prompt - cached - written, cached, short, long, *[getattr(tokens, n) for n in names]
        )


def comparators_of(
    quotes: Sequence[PriceQuote],
    request: RoutingRequest,
    forecast: CacheForecast | None,
    now_s: float,
) -> tuple[Comparator, ...]:
    """Return the comparators of a request, with the expected state of their prompt caches."""
    if forecast is None or not request.beginning.marks:
        return tuple([Comparator(quote.price) for quote in quotes])
    hour = is_for_an_hour(request.beginning)
    return tuple(
        [
            Comparator(
                quote.price, _hit(quote, request, forecast, now_s), request.prompt_tokens, hour
            )
            for quote in quotes
        ]
    )


def avoided_pusd(
    quotes: Sequence[PriceQuote],
    request: RoutingRequest,
    tokens: TokenCounts,
    forecast: CacheForecast | None,
    now_s: float,
) -> int:
    """Return the expected cost at the cheapest comparator in pico-USD; 0 without comparators."""
    if forecast is None or not request.beginning.marks:
        return min([quote.cost_pusd(tokens) for quote in quotes], default=0)
    costs = []
    for quote in quotes:
        hit = _hit(quote, request, forecast, now_s)
        if hit.expected or hit.written:
            hour = is_for_an_hour(request.beginning)
            costs.append(quote.cached_cost_pusd(hit.split(tokens, for_an_hour=hour)))
        else:
            costs.append(quote.cost_pusd(tokens))
    return min(costs, default=0)


def avoided_units_pusd(
    quotes: Sequence[PriceQuote], request: RoutingRequest, tokens: TokenCounts, units: KindUnits
) -> int:
    """Return the avoided cost of a request kind that is charged in other units than tokens."""
    return min([units.cost_pusd(tokens, quote.price, request) for quote in quotes], default=0)


def record_elsewhere(
    comparators: Sequence[Comparator],
    request: RoutingRequest,
    forecast: CacheForecast,
    now_s: float,
) -> None:
    """Record a prompt as if each comparator's provider had read it."""
    for comparator in comparators:
        rule = cache_rule(comparator.price)
        if rule is not None and request.prompt_tokens >= rule.least_tokens:
            name = _ELSEWHERE + comparator.price.name
            forecast.caches.record_read(name, request.beginning, rule, now_s)


def compared_cost_pusd(tokens: TokenCounts, comparator: Comparator) -> tuple[int, int]:
    """Return the cost in the standard tier, and the tokens assumed to be cached."""
    split = comparator.split_prompt(tokens)
    return cost_pusd(split, comparator.price), split.cached


def _hit(
    quote: PriceQuote, request: RoutingRequest, forecast: CacheForecast, now_s: float
) -> CachedPrompt:
    name = quote.price.name
    return forecast.prompt_at(name, quote, request, now_s, sent=_ELSEWHERE + name)
