"""Tells what comparators would charge: a request's own session would be in their prompt caches.

What an own engine's answer avoided is a bill of a world in which its session went to that API. So
of a prompt counts as cached what earlier turns would have put there, wherever they were answered,
and the share of it that answers of that API were charged as cached: nothing where none was seen,
but where it promises it.
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

_ELSEWHERE = "~"  # before a comparator's name: what was read there, and what would have been


class Comparator(NamedTuple):
    """A price to compare with, and what its provider would have had of the prompt.

    `estimate`: the tokens of the prompt that this is told of.
    """

    price: Price
    hit: CachedPrompt = NOTHING_CACHED
    estimate: int = 0
    for_an_hour: bool = False

    def split_prompt(self, tokens: TokenCounts) -> TokenCounts:
        """Return used tokens with those of the prompt by the kind it would be charged as.

        A cache that the tokens were really read from, as an own engine's, is none of the
        comparator's.
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
    """Return the comparators of a request, with what their caches would have of it."""
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
    """Return what the cheapest comparator is expected to charge; without any, nothing."""
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
    """Return the same of a kind that is charged by other units than tokens."""
    return min([units.cost_pusd(tokens, quote.price, request) for quote in quotes], default=0)


def record_elsewhere(
    comparators: Sequence[Comparator],
    request: RoutingRequest,
    forecast: CacheForecast,
    now_s: float,
) -> None:
    """A prompt was read: each comparator's provider would have it by now."""
    for comparator in comparators:
        rule = cache_rule(comparator.price)
        if rule is not None and request.prompt_tokens >= rule.least_tokens:
            name = _ELSEWHERE + comparator.price.name
            forecast.caches.record_read(name, request.beginning, rule, now_s)


def compared_cost_pusd(tokens: TokenCounts, comparator: Comparator) -> tuple[int, int]:
    """Return (what it would have charged in its standard tier, tokens assumed as cached)."""
    split = comparator.split_prompt(tokens)
    return cost_pusd(split, comparator.price), split.cached


def _hit(
    quote: PriceQuote, request: RoutingRequest, forecast: CacheForecast, now_s: float
) -> CachedPrompt:
    name = quote.price.name
    return forecast.prompt_at(name, quote, request, now_s, sent=_ELSEWHERE + name)
