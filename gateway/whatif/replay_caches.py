"""Prompt caches of providers in virtual time, with production functions.

A prompt's prefix is known by the ids of its parts, else by its session: later prompts of a session
extend earlier ones. A ledger request has the tokens that its API charged as cached, and only that
API has them. A cache follows its published rule; where marks are required, requests are assumed to
have them. The cached share is learned from charges, as in production.
"""

from collections.abc import Iterable, Sequence
from typing import Final
from zlib import crc32

from gateway.fleet.candidates import CandidateSnapshot
from gateway.fleet.comparators import Comparator, record_elsewhere
from gateway.fleet.prefix_index import ENDS, MINUTES_S, tokens_of
from gateway.fleet.provider_caches import (
    NOTHING_CACHED,
    CachedPrompt,
    CacheForecast,
    ProviderCaches,
)
from gateway.whatif.traffic import PREFIX_TOKENS, Arrival
from ledger.prices.quotes import PriceQuote, cache_rule
from ledger.prices.rates import Price
from router.cached_share import CachedShare
from router.prompts import PromptPrefix
from router.types import RoutingRequest

BYTES_PER_TOKEN: Final = 4  # of a prompt without text
_PART_BYTES: Final = PREFIX_TOKENS * BYTES_PER_TOKEN
_NOTHING: Final = PromptPrefix()


def beginning_of_arrival(arrival: Arrival) -> PromptPrefix:
    """Return the prefix of a prompt; equal prefixes have equal hashes."""
    size = BYTES_PER_TOKEN * arrival.prompt_tokens
    if arrival.prefix:
        parts = min(size, _PART_BYTES * len(arrival.prefix))
        return PromptPrefix(tuple(_marks_of_parts(arrival.prefix, parts)), 0, size, MINUTES_S)
    if arrival.session:
        marks = tuple(_chain(arrival.session_number(), size))
        return PromptPrefix(marks, 0, size, MINUTES_S)
    if arrival.cached:
        seed = crc32(f"{arrival.at_s}\0{arrival.tenant}\0{arrival.prompt_tokens}".encode())
        return PromptPrefix(tuple(_chain(seed, size)), 0, size, MINUTES_S)
    return _NOTHING


class ReplayCaches:
    """Prompts that each API has read under one policy set, and its charges as cached."""

    def __init__(self) -> None:
        self.forecast = CacheForecast(ProviderCaches(None), CachedShare())

    def prepare(self, arrival: Arrival, beginning: PromptPrefix, price: Price | None) -> None:
        """Add to the recorded API as much of the prompt as it charged as cached."""
        rule = None if price is None else cache_rule(price)
        if arrival.recorded and arrival.cached and rule is not None and arrival.api:
            known = _first_tokens(beginning, arrival.cached)
            self.forecast.caches.record_read(arrival.api, known, rule, arrival.at_s)

    def charged_hit(
        self, arrival: Arrival, entry: CandidateSnapshot, request: RoutingRequest
    ) -> CachedPrompt:
        """Return what the API would charge as cached and written now."""
        price = entry.price
        if price is None or not request.beginning.marks:
            return NOTHING_CACHED
        readable = entry.prefix_tokens
        if arrival.recorded:
            there = arrival.api == entry.target.name
            readable = min(arrival.cached, arrival.prompt_tokens) if there else 0
        return _whole_hit(PriceQuote(price), arrival.prompt_tokens, readable)

    def record_answer(
        self,
        target: str,
        price: Price | None,
        request: RoutingRequest,
        hit: CachedPrompt,
        at_s: float,
    ) -> None:
        """Record an answer of an API: its cache has the prompt now, and its charge is observed."""
        rule = None if price is None else cache_rule(price)
        if rule is None or request.prompt_tokens < rule.least_tokens:
            return
        if hit.readable:
            self.forecast.shares.observe(target, hit.readable, hit.expected, at_s)
        self.forecast.caches.record_read(target, request.beginning, rule, at_s)

    def record_elsewhere(
        self, comparators: Sequence[Comparator], request: RoutingRequest, at_s: float
    ) -> None:
        """Record the prompt at comparators, too, whichever target answered."""
        if request.beginning.marks:
            record_elsewhere(comparators, request, self.forecast, at_s)


class CachedBills:
    """Cost of requests if each were sent to the cheapest API of its model.

    Every request is known to each of these APIs from its arrival on.
    """

    def __init__(self) -> None:
        self._caches = ProviderCaches(None)

    def hits(self, arrival: Arrival, prices: Iterable[Price]) -> list[tuple[Price, CachedPrompt]]:
        """Return what each price's provider would charge as cached; call in order of arrival."""
        prefix = beginning_of_arrival(arrival)
        found = []
        for price in prices:
            rule, hit = cache_rule(price), NOTHING_CACHED
            if rule is not None and prefix.marks and arrival.prompt_tokens >= rule.least_tokens:
                tokens = arrival.cached
                if not arrival.recorded:
                    pieces = self._caches.count_known(price.name, prefix, arrival.at_s)
                    tokens = tokens_of(prefix, pieces, arrival.prompt_tokens)
                    self._caches.record_read(price.name, prefix, rule, arrival.at_s)
                hit = _whole_hit(PriceQuote(price), arrival.prompt_tokens, rule.readable(tokens))
            found.append((price, hit))
        return found


def _whole_hit(quote: PriceQuote, prompt_tokens: int, readable: int) -> CachedPrompt:
    """Return a hit where all readable tokens are read, and marked ones are written."""
    rule = quote.cache_rule
    if rule is None or prompt_tokens < rule.least_tokens:
        return NOTHING_CACHED
    written = prompt_tokens - readable if rule.marked and quote.charges_writes else 0
    return CachedPrompt(readable, readable, written)


def _first_tokens(beginning: PromptPrefix, tokens: int) -> PromptPrefix:
    """Return the hashes of the first tokens, up to the block with the last one."""
    pieces = 0
    while pieces < len(beginning.marks) and BYTES_PER_TOKEN * tokens > (
        ENDS[pieces - 1] if pieces else 0
    ):
        pieces += 1
    return beginning._replace(marks=beginning.marks[:pieces])


def _marks_of_parts(parts: Sequence[int], size: int) -> Iterable[int]:
    """Yield a hash per block, from its place and the parts that it covers."""
    mark = told = 0
    for place, end in enumerate(ENDS):
        if end > size:
            return
        until = -(-end // _PART_BYTES)
        words = "\0".join(map(str, (place, *parts[told:until])))
        mark, told = crc32(words.encode(), mark), until
        yield mark


def _chain(seed: int, size: int) -> Iterable[int]:
    mark = seed
    for place, end in enumerate(ENDS):
        if end > size:
            return
        mark = crc32(place.to_bytes(4, "little"), mark)
        yield mark
