"""The price book: finds the price version that is in force for a name at a given time.

`find` tries the exact name, then the alias from a price file, then, in this order: the name without
its region (`openai/gpt-5.5#eu`: no surcharge is listed, so the base price applies), the name in any
case, and the name without its snapshot suffix (`-2026-03-17`, `-20260317`, `-latest`). Any other
name is unpriced (`None`), never free. Costs are computed in `rates`; this module exports its names
as well.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final

from msgspec.structs import replace

from ledger.journals.token_kinds import (
    OUTPUT_KINDS,
    PER_UNIT,
    PROMPT_KINDS,
    TOKENS_LIMIT,
    TokenCounts,
    TokenRates,
)
from ledger.model_names import plain_names
from ledger.prices import unread_terms
from ledger.prices.rates import (
    BIGINT_LIMIT,
    KINDS,
    STANDARD,
    Price,
    PriceError,
    PriceTerms,
    ReachableMedia,
    TierRates,
    UnpricedTierError,
    bound_pusd,
    cost_pusd,
    per_unit_bound_pusd,
    prompt_tokens,
    rates_for,
    rates_from,
    units_bound_pusd,
)

__all__ = [
    "BATCH",
    "STANDARD",
    "Price",
    "PriceBook",
    "PriceError",
    "PriceTerms",
    "TierRates",
    "TokenRates",
    "UnpricedTierError",
    "bound_pusd",
    "check",
    "cost_pusd",
    "dearest_usage",
    "is_open",
    "last_at",
    "per_unit_bound_pusd",
    "prompt_tokens",
    "rates_for",
    "rates_from",
    "tier_cost_pusd",
    "tier_of",
    "units_bound_pusd",
]

MARKET_RANK = 0  # the rank of market price lists; configured files have ranks from 1
BATCH: Final = "batch"  # the tier of a batch's rates
_SAME_TIER = {"fast": "priority"}  # OpenAI's newer name of the tier
_STANDARD_WORDS = frozenset({"", "auto", "default", "on_demand", "standard", "standard_only"})


class PriceBook:
    """Immutable book of all price versions. A reload builds a new one.

    Raises `PriceError` with every price that fails `check`.
    """

    __slots__ = ("_aliases", "_any_case", "_by_name", "_by_version", "_edges_us")

    def __init__(self, prices: Iterable[Price], aliases: Mapping[str, str] | None = None) -> None:
        self._aliases = dict(aliases or {})
        self._by_version: dict[int, Price] = {}
        by_book: dict[str, dict[str, list[Price]]] = {}
        faults: list[str] = []
        for price in sorted(
            prices, key=lambda each_price: (each_price.effective_from_us, each_price.version)
        ):
            faults += [f"{price.name} (version {price.version}): {why}" for why in check(price)]
            self._by_version[price.version] = price
            by_book.setdefault(price.name, {}).setdefault(price.book, []).append(price)
        if faults:
            raise PriceError("; ".join(faults))
        # Per name: each book's versions by time.
        self._by_name: dict[str, tuple[tuple[Price, ...], ...]] = {
            name: tuple(map(tuple, books.values())) for name, books in by_book.items()
        }

        edges_us = {each_price.effective_from_us for each_price in self._by_version.values()}
        edges_us |= {each_price.effective_until_us or 0 for each_price in self._by_version.values()}
        self._edges_us = sorted(edges_us | {0})
        self._any_case = {name.lower(): name for name in sorted(self._by_name, reverse=True)}

    def __len__(self) -> int:
        return len(self._by_version)

    def find(self, name: str, at_us: int) -> Price | None:
        """Return the price in force, by exact name or by one of the documented rules."""
        found = self._in_force(name, at_us)
        if found is not None:
            return found
        for other in self._other_names(name):
            found = self._in_force(other, at_us)
            if found is not None:
                return found
        return None

    def unchanged_span_us(self, at_us: int) -> tuple[int, int]:
        """Return start and end, in microseconds, of the span in which no price changes."""
        edges_us, place = self._edges_us, bisect_right(self._edges_us, at_us)
        since_us = edges_us[place - 1] if place else -BIGINT_LIMIT
        return since_us, edges_us[place] if place < len(edges_us) else BIGINT_LIMIT

    def version(self, version: int) -> Price | None:
        """Return a version by its number, for audits and settles; `None` if it is unknown."""
        return self._by_version.get(version)

    def unread_terms(self, price: Price, at_us: int) -> tuple[str, ...]:
        """Return charges in the market list of the same name that the price does not state.

        A price from a file or a person covers only the charges that it states, unless `complete` is
        set. The maximum number of searches is a limit, so it is reported even then.
        """
        terms = price.terms
        return unread_terms.missing_limits(
            () if terms.complete else self._unread_charges(price, at_us),
            search_pusd=terms.search_pusd,
            searches_limit=terms.searches_limit,
            output_pusd=terms.rates.output,
        )

    def _unread_charges(self, price: Price, at_us: int) -> tuple[str, ...]:
        terms = price.terms
        if price.rank == MARKET_RANK:
            return terms.unread
        standing = (last_at(versions, at_us) for versions in self._by_name.get(price.name, ()))
        listed = [
            stands
            for stands in standing
            if stands is not None and stands.rank == MARKET_RANK and is_open(stands, at_us)
        ]
        market = max(listed, key=_precedence, default=None)
        names = terms.unread if market is None else market.terms.unread
        return unread_terms.answered(
            names,
            per_request=terms.request_pusd > 0,
            searches=terms.search_pusd > 0 and terms.searches_limit > 0,
        )

    @property
    def newest_version(self) -> int:
        """Return the number of the version stored last, 0 in an empty book."""
        return max(self._by_version, default=0)

    def with_prices(self, prices: Iterable[Price]) -> "PriceBook":
        """Return a copy of the book with these versions added."""
        return PriceBook([*self._by_version.values(), *prices], self._aliases)

    def books_of(self, name: str) -> tuple[tuple[Price, ...], ...]:
        """Return every version of exactly this name, grouped by book and ordered by time."""
        return self._by_name.get(name, ())

    def names(self) -> list[str]:
        return sorted(self._by_name)

    def prices_in_force(self, at_us: int) -> Iterator[Price]:
        """Yield the price in force of each name, ordered by name."""
        for name in sorted(self._by_name):
            found = self._in_force(name, at_us)
            if found is not None:
                yield found

    def _in_force(self, name: str, at_us: int) -> Price | None:
        """Return the price in force: highest rank first, then the version stored last."""
        standing = (last_at(versions, at_us) for versions in self._by_name.get(name, ()))
        found = [price for price in standing if price is not None and is_open(price, at_us)]
        return max(found, key=_precedence, default=None)

    def _other_names(self, name: str) -> Iterator[str]:
        if name in self._aliases:
            yield self._aliases[name]
        base, lower, bare = plain_names(name)
        yield base
        if base in self._aliases:
            yield self._aliases[base]
        yield self._any_case.get(lower, base)
        yield self._any_case.get(bare, bare)


def tier_of(service_tier: str | None) -> str:
    """Return the price book's name of the tier in a response's `service_tier`."""
    word = (service_tier or "").lower()
    return STANDARD if word in _STANDARD_WORDS else _SAME_TIER.get(word, word)


def lists_tier(price: Price, tier: str) -> bool:
    """Return whether the price has rates for this service tier of a request.

    Batch rates do not apply: a request that names `batch` is served and charged at standard rates.
    """
    if tier in (STANDARD, BATCH):
        return tier == STANDARD
    return any(schedule.tier == tier for schedule in price.terms.schedules)


def tier_cost_pusd(tokens: TokenCounts, price: Price, service_tier: str | None) -> tuple[int, bool]:
    """Return the cost in the response's tier, and whether the price lists that tier.

    A tier without rates is charged at the standard rates, and the row is flagged.
    """
    tier = tier_of(service_tier)
    try:
        return cost_pusd(tokens, price, tier=tier), True
    except UnpricedTierError:
        return cost_pusd(tokens, price), False


def dearest_usage(
    tokens: TokenCounts,
    price: Price,
    media: ReachableMedia,
    *,
    tier: str | None = None,
    is_prompt_told: bool = False,
) -> tuple[TokenCounts, str | None]:
    """Return the usage in the kinds and the tier that make it cost most, and that tier.

    Holds use this upper bound, because kinds and tier are unknown until the response states them.
    `tier` is the tier that the response named, if any; otherwise all tiers compete, and a result of
    `None` is the standard one. With `is_prompt_told`, the prompt's kinds are kept as reported.
    """
    named = {schedule.tier for schedule in price.terms.schedules} - {STANDARD}
    tiers = [None, *sorted(named)] if tier is None else [tier]
    options = [(_dearest_kinds(tokens, price, media, each, is_prompt_told), each) for each in tiers]
    return max(options, key=lambda option: tier_cost_pusd(option[0], price, option[1])[0])


def _dearest_kinds(
    tokens: TokenCounts, price: Price, media: ReachableMedia, tier: str | None, told: bool
) -> TokenCounts:
    """Return all prompt and all output tokens in their most expensive kind of one tier."""
    prompt = tokens.whole_prompt
    try:
        rates = rates_for(price, tier_of(tier), prompt)
    except UnpricedTierError:
        rates = rates_for(price, STANDARD, prompt)
    counts = dict.fromkeys((kind.field for kind in OUTPUT_KINDS), 0)
    if not told:
        heard = (kind for kind in PROMPT_KINDS if media.audio_input or not kind.is_sound)
        read = max(heard, key=lambda kind: getattr(rates, kind.price))
        counts |= dict.fromkeys((kind.field for kind in PROMPT_KINDS), 0) | {read.field: prompt}
    reachable = (
        kind
        for kind in OUTPUT_KINDS
        if (media.audio_output or not kind.is_sound) and (media.images or not kind.is_picture)
    )
    made = max(reachable, key=lambda kind: getattr(rates, kind.price))
    counts |= {made.field: tokens.output, "output": tokens.output}
    return replace(tokens, searches=price.terms.searches_limit, **counts)


def check(price: Price) -> list[str]:
    """Return the faults of a price as sentences, empty for a price that can be used."""
    faults = [] if "/" in price.name.strip("/") else ["the name must be `provider/model`"]
    faults += [] if price.name.isprintable() else ["the name must be printable"]
    faults += _check_terms(price.terms)
    until = price.effective_until_us
    if until is not None and until <= price.effective_from_us:
        faults.append("it ends before it begins")
    return faults


@lru_cache(maxsize=2048)
def _check_terms(terms: PriceTerms) -> tuple[str, ...]:
    """Return the faults of the terms. Cached: many of the 3,300 bundled names share terms."""
    faults = []
    every = [terms.rates, *(schedule.rates for schedule in terms.schedules)]
    amounts = [getattr(rates, kind) for rates in every for kind in KINDS]
    amounts += [terms.request_pusd, terms.uplift_ppm, terms.searches_limit, terms.reasoning_limit]
    amounts += [getattr(terms, kind.price) for kind in PER_UNIT]
    amounts += [schedule.picture_pusd or 0 for schedule in terms.schedules]
    amounts += [schedule.request_pusd or 0 for schedule in terms.schedules]
    if min(amounts) < 0:
        faults.append("a price is never negative")
    steps = [(schedule.tier, schedule.above_tokens) for schedule in terms.schedules]
    if any((step.request_pusd or 0) > terms.request_pusd for step in terms.schedules):
        faults.append("a tier's fee of a request is at most the standard one")
    if steps != sorted(set(steps)) or (STANDARD, 0) in steps:
        faults.append("schedules must ascend by tier and threshold, each once")
    tiers = {tier for tier, _ in steps} - {STANDARD}
    faults += [
        f"tier `{tier}` has no rates for short prompts"
        for tier in sorted(tiers)
        if (tier, 0) not in steps
    ]
    if terms.reasoning_limit > (TOKENS_LIMIT if terms.reasoning_outside else 0):
        faults.append("thoughts have a limit of their own only outside, and below any request's")
    price = Price(0, "", "", 0, terms)
    largest = bound_pusd(price, prompt_tokens=TOKENS_LIMIT, output_tokens=TOKENS_LIMIT)
    largest += per_unit_bound_pusd(price, None, **{kind.field: kind.limit for kind in PER_UNIT})
    if largest >= BIGINT_LIMIT:
        faults.append("the dearest possible request does not fit a 64-bit integer")
    return tuple(faults)


def last_at(versions: Sequence[Price], at_us: int) -> Price | None:
    """Return the version of one book in force at a time. `versions` must be ordered by time."""
    place = bisect_right(versions, at_us, key=_since_us)
    return versions[place - 1] if place else None


def is_open(price: Price, at_us: int) -> bool:
    """Return whether a version counts at a time: not withdrawn and before its end."""
    until_us = price.effective_until_us
    return not price.withdrawn and (until_us is None or at_us < until_us)


def _precedence(price: Price) -> tuple[int, int]:
    return price.rank, price.version


def _since_us(price: Price) -> int:
    return price.effective_from_us
