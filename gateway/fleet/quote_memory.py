"""Cache of price quotes, valid while no price of the book changes."""

from collections.abc import Mapping, Sequence

from ledger.prices.book import PriceBook, lists_tier
from ledger.prices.modellimits import ModelLimits
from ledger.prices.quotes import PriceQuote
from ledger.prices.rates import STANDARD
from router.types import RoutingRequest

PRICED_LIMIT = 4096  # maximum cached names


class QuoteMemory:
    """Cached quotes of one worker. `limits` maps names of the price book to model limits."""

    def __init__(self, prices: PriceBook, limits: Mapping[str, ModelLimits]) -> None:
        self._prices, self._limits = prices, limits
        self._quoted: dict[tuple[str, str], PriceQuote | None] = {}
        self._compared: dict[tuple[str, ...], tuple[PriceQuote, ...]] = {}
        self._quoted_us = (0, 0)  # validity of these quotes
        self._version = ""  # version text, created when first used

    def reprice(self, prices: PriceBook) -> None:
        """Replace the price book and drop all quotes."""
        self._prices, self._quoted_us, self._version = prices, (0, 0), ""

    def version_at(self, at_us: int) -> str:
        """Return the book's newest version and the start of its prices, as one text."""
        self.quotes_at((), at_us)
        if not self._version:
            self._version = f"{self._prices.newest_version}/{self._quoted_us[0]}"
        return self._version

    def quotes_at(self, names: Sequence[str], at_us: int) -> tuple[PriceQuote, ...]:
        """Return the quotes of the names that have a price, and set the time for `quote`."""
        since_us, until_us = self._quoted_us
        if not since_us <= at_us < until_us:
            self._quoted_us = self._prices.unchanged_span_us(at_us)
            self._quoted, self._compared, self._version = {}, {}, ""
        key = tuple(names)
        compared = self._compared.get(key)
        if compared is None:
            found = [self.quote(name) for name in key]
            compared = tuple([quote for quote in found if quote is not None])
            if len(self._compared) < PRICED_LIMIT:
                self._compared[key] = compared
        return compared

    def quote_for(self, request: RoutingRequest, name: str, tier: str = "") -> PriceQuote | None:
        """Return the quote of a name, with at most as many searches as the request allows."""
        quote = self.quote(name, tier)
        if quote is None or not request.searches_limit:
            return quote
        return quote.limit_searches(request.searches_limit)

    def quote(self, name: str, tier: str = "") -> PriceQuote | None:
        """Return the quote of a name at the time of the last `quotes_at`; None: no price.

        `tier` is the expected service tier; the standard tier is used if the price does not list
        it.
        """
        if tier:  # unlisted tiers are not cached: clients may send any value
            usual = self.quote(name)
            if usual is None or not lists_tier(usual.price, tier):
                return usual
        key = name, tier
        if key in self._quoted:
            return self._quoted[key]
        price = self._prices.find(name, self._quoted_us[0])
        quote = None
        if price is not None:
            quote = PriceQuote(
                price,
                self._prices.unread_terms(price, self._quoted_us[0]),
                self._limits.get(price.name.partition("#")[0]),
                tier or STANDARD,
            )
        if len(self._quoted) < PRICED_LIMIT:
            self._quoted[key] = quote
        return quote
