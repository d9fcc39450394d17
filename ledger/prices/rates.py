"""The parts of a price, and the only functions that multiply tokens by a price.

Every kind of token has a rate in pico-USD, so a cost is exact. Rates that a provider does not
list are the ones it charges instead: cached reads and cache writes as input, reasoning as output,
audio and pictures as text. A request whose prompt passes a threshold pays that schedule's rates
for all its tokens. A service tier without rates is refused, never zero. Values are stored as they
are. Sound and searches have rates of their own: a transcription is charged by its tokens where the
answer counts them and the price lists them, else by its seconds.
"""

from collections.abc import Callable, Collection, Mapping
from operator import attrgetter
from typing import NamedTuple

import msgspec

from ledger.journals.token_kinds import (
    OUTPUT_KINDS,
    PER_TOKEN,
    PER_UNIT,
    PROMPT_KINDS,
    TOKEN,
    TOKEN_KINDS,
    TokenCounts,
    TokenKind,
    TokenRates,
    UnitPrices,
)
from ledger.money import PPM, divide_half_even

STANDARD = "standard"
KINDS = tuple(kind.field for kind in PER_TOKEN)
_KNOWN = frozenset(KINDS)
BIGINT_LIMIT = 2**63
_FALLBACK = {kind.field: kind.price_as for kind in PER_TOKEN if kind.price_as is not None}
# Most requests have no others: these are looked at one by one.
_USUAL = frozenset({"input", "cached", "output", "reasoning"})
_SELDOM = tuple(kind for kind in TOKEN_KINDS if kind.field not in _USUAL)
_Values = Callable[[TokenCounts | TokenRates], tuple[int, ...]]
_of_prompt: _Values = attrgetter(*(kind.field for kind in PROMPT_KINDS))
_of_text_prompt: _Values = attrgetter(*(kind.field for kind in PROMPT_KINDS if not kind.is_sound))
_of_outputs: dict[tuple[bool, bool], _Values] = {
    (audio, images): attrgetter(
        *(
            kind.price
            for kind in OUTPUT_KINDS
            if (audio or not kind.is_sound) and (images or not kind.is_picture)
        )
    )
    for audio in (False, True)
    for images in (False, True)
}
_seldom: _Values = attrgetter(*(kind.field for kind in _SELDOM))


class PriceError(ValueError):
    """A price that cannot be used; the message says which and why."""


class UnpricedTierError(PriceError):
    """The request ran in a service tier that this price does not list."""


class TierRates(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rates of one service tier for prompts above `above_tokens` (0: every prompt).

    A form of pictures (`hd/1024x1792`) is a tier as well, and a depth of search (`search-low`).
    `picture_pusd` and `request_pusd` are the price of a picture and the fee of a request, where
    they differ from the standard ones; no fee is above that.
    """

    tier: str
    above_tokens: int
    rates: TokenRates
    picture_pusd: int | None = None
    request_pusd: int | None = None


class PriceTerms(UnitPrices, frozen=True, omit_defaults=True):
    """All that decides a cost. `schedules` hold what differs from the standard `rates`.

    `inclusive`: a prompt of exactly `above_tokens` already pays the higher rates.
    `uplift_ppm` is a regional surcharge on the whole request, rounded half-even once.
    `unread` are names of charges that its source states and these terms do not say
    (`ledger.prices.unread_terms`); `complete`: its source says that there are none.
    `searches_limit` is the most searches of one request, 0 where nobody stated it.
    `reasoning_outside`: thoughts are billed beside `max_tokens`, at most `reasoning_limit` tokens a
    choice, 0 where nobody stated how many. `image_rule`: how a picture of the prompt is counted
    (`ledger.prices.picture_tokens`), "" where nobody stated it.
    """

    rates: TokenRates
    schedules: tuple[TierRates, ...] = ()
    request_pusd: int = 0
    uplift_ppm: int = 0
    inclusive: bool = False
    unread: tuple[str, ...] = ()
    complete: bool = False
    searches_limit: int = 0
    reasoning_outside: bool = False
    reasoning_limit: int = 0
    image_rule: str = ""


class Price(msgspec.Struct, frozen=True, omit_defaults=True):
    """One version of one name's price. Of two books that price a name, the higher rank counts.

    `withdrawn` ends the name in its book from `effective_from_us` on.
    """

    version: int
    name: str  # provider/model
    book: str  # where it was read: "litellm", or a price file's name
    effective_from_us: int
    terms: PriceTerms
    effective_until_us: int | None = None
    rank: int = 0  # 0: bundled; files override it in the order they are configured
    source: str | None = None  # address or contract behind the number
    source_date: str | None = None  # ISO day on which the source said so
    retired_on: str | None = None  # ISO day on which the provider stops serving the model
    simulated: bool = False
    withdrawn: bool = False


def rates_from(listed: Mapping[str, int]) -> TokenRates:
    """Return complete rates from listed ones; `input` and `output` must be among them."""
    if unknown := listed.keys() - _KNOWN:
        raise PriceError(f"unknown kinds of tokens: {', '.join(sorted(unknown))}")
    if "input" not in listed or "output" not in listed:
        raise PriceError("both `input` and `output` must be priced")
    full = dict(listed)
    for kind, instead in _FALLBACK.items():
        full.setdefault(kind, full[instead])
    return TokenRates(**full)


def overlay_rates(below: Mapping[str, int], stated: Mapping[str, int]) -> dict[str, int]:
    """Return the rates of a schedule over those below; its output price covers reasoning too."""
    full = {**below, **stated}
    if "output" in stated and "reasoning" not in stated:
        full.pop("reasoning", None)
    return full


class ReachableMedia(NamedTuple):
    """The kinds of tokens beside text that a request can be charged for."""

    audio_input: bool = True
    audio_output: bool = True
    images: bool = True  # in the output


ANY_MEDIA = ReachableMedia()
WITHOUT_SOUND = ReachableMedia(audio_input=False, audio_output=False)
WITHOUT_IMAGES = ReachableMedia(images=False)
TEXT_ALONE = ReachableMedia(audio_input=False, audio_output=False, images=False)


def is_unlisted(rates: TokenRates, kind: str) -> bool:
    """Return whether a kind costs just what the one it falls back on costs."""
    instead = _FALLBACK.get(kind)
    return instead is not None and getattr(rates, kind) == getattr(rates, instead)


def cost_pusd(tokens: TokenCounts, price: Price, *, tier: str = STANDARD) -> int:
    """Return an attempt's exact cost. Raises `UnpricedTierError` for a tier without rates."""
    terms = price.terms
    rates = terms.rates
    if terms.schedules:
        rates = rates_for(price, tier, prompt_tokens(tokens))
    elif tier != STANDARD:
        raise UnpricedTierError(f"{price.name} (version {price.version}) has no `{tier}` price")
    pusd = (
        tokens.input * rates.input
        + tokens.output * rates.output
        + tokens.cached * rates.cached
        + (terms.request_pusd if tier == STANDARD else request_fee_pusd(terms, tier))
    )
    if tokens.reasoning:
        pusd += tokens.reasoning * (rates.reasoning - rates.output)
    if any(_seldom(tokens)):
        pusd += _seldom_pusd(tokens, terms, rates, tier)
    return _uplift(pusd, terms.uplift_ppm) if terms.uplift_ppm else pusd


def bound_pusd(
    price: Price,
    *,
    prompt_tokens: int,
    output_tokens: int,
    tiers: Collection[str] | None = None,
    media: ReachableMedia = ANY_MEDIA,
) -> int:
    """Return the most that these tokens may cost: each at its dearest reachable kind, in pico-USD.

    `output_tokens` are those of all choices. `tiers` are the service tiers the request can run in
    (`None`: any that is priced, because the provider's default may not be the standard one).
    `media`: the kinds beside text that it can be charged for.
    """
    terms = price.terms
    reachable = [terms.rates] if tiers is None or STANDARD in tiers else []
    for schedule in terms.schedules:
        above, is_met = schedule.above_tokens, terms.inclusive
        if above > prompt_tokens or (above == prompt_tokens and above and not is_met):
            continue
        if tiers is None or schedule.tier in tiers:
            reachable.append(schedule.rates)
    if not reachable:
        raise UnpricedTierError(f"{price.name} (version {price.version}) has none of {tiers}")
    # One tier's rates hold for all tokens of an answer.
    pusd = max(
        prompt_tokens * dearest_input(rates, audio=media.audio_input)
        + output_tokens * dearest_output(rates, audio=media.audio_output, images=media.images)
        for rates in reachable
    )
    pusd += terms.request_pusd + terms.searches_limit * terms.search_pusd
    return _uplift(pusd, terms.uplift_ppm) if terms.uplift_ppm else pusd


def per_unit_bound_pusd(price: Price, tiers: Collection[str] | None = None, **counts: int) -> int:
    """Return an upper bound of what `cost_pusd` charges by the unit, the request's fee in it.

    `counts` are fields of `TokenCounts`; `tiers`: as in `bound_pusd`.
    """
    pusd = price.terms.request_pusd + _units_pusd(price.terms, tiers, counts)
    return -(-pusd * (PPM + price.terms.uplift_ppm) // PPM)


def units_bound_pusd(price: Price, tiers: Collection[str] | None = None, **counts: int) -> int:
    """Return the most that the units cost, in pico-USD; the fee is in the bound on tokens.

    Both are rounded, and their sum once, which may be one more.
    """
    pusd, uplift_ppm = _units_pusd(price.terms, tiers, counts), price.terms.uplift_ppm
    return -(-pusd * (PPM + uplift_ppm) // PPM) + bool(uplift_ppm and pusd)


def _units_pusd(terms: PriceTerms, tiers: Collection[str] | None, counts: Mapping[str, int]) -> int:
    pusd, most = 0, TokenCounts(**counts)
    for kind in PER_UNIT:
        count = getattr(most, kind.field)
        if count:
            pusd -= -count * _dearest_unit_pusd(terms, kind, tiers) // kind.unit.counts
    return pusd


def request_fee_pusd(terms: PriceTerms, tier: str) -> int:
    """Return the fee of a request in a tier: the standard one where it has none of its own."""
    for schedule in terms.schedules:
        if schedule.tier == tier and schedule.request_pusd is not None:
            return schedule.request_pusd
    return terms.request_pusd


def unit_pusd(terms: PriceTerms, kind: TokenKind, tier: str) -> int:
    """Return the price of a unit in a tier: the standard one where the tier has none of its own."""
    if kind.by_tier:
        for schedule in terms.schedules:
            own = getattr(schedule, kind.price)
            if schedule.tier == tier and own is not None:
                return int(own)
    return int(getattr(terms, kind.price))


def _dearest_unit_pusd(terms: PriceTerms, kind: TokenKind, tiers: Collection[str] | None) -> int:
    if not kind.by_tier:
        return int(getattr(terms, kind.price))
    every = {STANDARD, *(schedule.tier for schedule in terms.schedules)} if tiers is None else tiers
    return max((unit_pusd(terms, kind, tier) for tier in every), default=0)


def rates_for(price: Price, tier: str, prompt: int) -> TokenRates:
    """Return the rates that all tokens of a request with this prompt pay in this tier."""
    terms = price.terms
    found = terms.rates if tier == STANDARD else None
    for schedule in terms.schedules:  # ascending thresholds within a tier: the last that fits wins
        if schedule.tier == tier and (
            prompt > schedule.above_tokens
            or schedule.above_tokens == 0
            or (terms.inclusive and prompt == schedule.above_tokens)
        ):
            found = schedule.rates
    if found is None:
        raise UnpricedTierError(f"{price.name} (version {price.version}) has no `{tier}` price")
    return found


def prompt_tokens(tokens: TokenCounts) -> int:
    """Return the whole prompt, as context limits and thresholds count it."""
    return tokens.whole_prompt


def dearest_input(rates: TokenRates, *, audio: bool) -> int:
    """Return the most that a token of the prompt can cost; without `audio`, a token of its text."""
    return max(_of_prompt(rates) if audio else _of_text_prompt(rates))


def dearest_output(rates: TokenRates, *, audio: bool, images: bool) -> int:
    """Return the most that a token of the output costs, in pico-USD."""
    return max(_of_outputs[audio, images](rates))


def _seldom_pusd(tokens: TokenCounts, terms: PriceTerms, rates: TokenRates, tier: str) -> int:
    """Return cost of the kinds that few requests have, in pico-USD."""
    pusd = 0
    for kind in _SELDOM:
        count = getattr(tokens, kind.field)
        if not count:
            continue
        if kind.unit is TOKEN:
            whole = 0 if kind.part_of is None else getattr(rates, kind.part_of)
            pusd += count * (getattr(rates, kind.price) - whole)
        elif not is_charged(kind.unless, tokens, rates):
            pusd += divide_half_even(count * unit_pusd(terms, kind, tier), kind.unit.counts)
    return pusd


def is_charged(field: str | None, tokens: TokenCounts, rates: TokenRates) -> bool:
    """Return whether a kind is both counted and priced by the token."""
    return field is not None and bool(getattr(tokens, field) and getattr(rates, field))


def _uplift(pusd: int, uplift_ppm: int) -> int:
    return divide_half_even(pusd * (PPM + uplift_ppm), PPM)
