"""The parts of a price, and the only functions that multiply tokens by a price.

Rates are pico-USD per token, so costs are exact. A kind that a provider does not list costs what
the provider charges instead: cached reads and cache writes as input, reasoning as output, audio and
pictures as text. A request whose prompt exceeds a threshold pays that schedule's rates for all its
tokens. A service tier without rates is refused, never free. Prices are stored as stated. Sound and
searches have rates of their own: a transcription is charged by tokens if the answer counts them and
the price lists them, otherwise by seconds.
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
# Most requests have only these kinds, so `cost_pusd` handles them without a loop.
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
    """A price that cannot be used; the message names the price and the reason."""


class UnpricedTierError(PriceError):
    """A service tier that the price does not list."""


class TierRates(msgspec.Struct, frozen=True, omit_defaults=True):
    """The rates of one service tier for prompts above `above_tokens` (0: every prompt).

    A picture form (`hd/1024x1792`) and a search depth (`search-low`) are tiers as well.
    `picture_pusd` and `request_pusd` are the price of a picture and the fee of a request, if they
    differ from the standard ones. A tier's fee never exceeds the standard fee.
    """

    tier: str
    above_tokens: int
    rates: TokenRates
    picture_pusd: int | None = None
    request_pusd: int | None = None


class PriceTerms(UnitPrices, frozen=True, omit_defaults=True):
    """The terms that decide a cost: standard `rates`, and `schedules` that differ from them.

    `inclusive`: a prompt of exactly `above_tokens` pays the higher rates. `uplift_ppm`: a regional
    surcharge on the whole request, rounded half-even once. `unread`: names of charges that the
    source states and these terms do not cover (`ledger.prices.unread_terms`). `complete`: the
    source says that there are none. `searches_limit`: maximum searches of one request, 0 if
    unknown. `reasoning_outside`: reasoning is billed on top of `max_tokens`, at most
    `reasoning_limit` tokens per choice (0 if unknown). `image_rule`: the token rule for pictures of
    the prompt (`ledger.prices.picture_tokens`), "" if unknown.
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
    """One version of one name's price. If two books price a name, the higher rank counts.

    A `withdrawn` version ends the name in its book from `effective_from_us` on.
    """

    version: int
    name: str  # provider/model
    book: str  # where it was read: "litellm", or a price file's name
    effective_from_us: int
    terms: PriceTerms
    effective_until_us: int | None = None
    rank: int = 0  # 0: bundled; files override it in the order they are configured
    source: str | None = None  # address or contract behind the number
    source_date: str | None = None  # ISO day on which the source stated the price
    retired_on: str | None = None  # ISO day on which the provider stops serving the model
    simulated: bool = False
    withdrawn: bool = False


def rates_from(listed: Mapping[str, int]) -> TokenRates:
    """Return complete rates from the listed ones. Raises `PriceError` without input or output."""
    if unknown := listed.keys() - _KNOWN:
        raise PriceError(f"unknown kinds of tokens: {', '.join(sorted(unknown))}")
    if "input" not in listed or "output" not in listed:
        raise PriceError("both `input` and `output` must be priced")
    full = dict(listed)
    for kind, instead in _FALLBACK.items():
        full.setdefault(kind, full[instead])
    return TokenRates(**full)


def overlay_rates(below: Mapping[str, int], stated: Mapping[str, int]) -> dict[str, int]:
    """Return a schedule's stated rates, completed by the rates below it.

    A stated output price also applies to reasoning.
    """
    full = {**below, **stated}
    if "output" in stated and "reasoning" not in stated:
        full.pop("reasoning", None)
    return full


class ReachableMedia(NamedTuple):
    """The kinds of tokens other than text that a request can be charged for."""

    audio_input: bool = True
    audio_output: bool = True
    images: bool = True  # in the output


ANY_MEDIA = ReachableMedia()
WITHOUT_SOUND = ReachableMedia(audio_input=False, audio_output=False)
WITHOUT_IMAGES = ReachableMedia(images=False)
TEXT_ALONE = ReachableMedia(audio_input=False, audio_output=False, images=False)


def is_unlisted(rates: TokenRates, kind: str) -> bool:
    """Return whether a kind costs the same as the kind that it falls back on."""
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
    """Return the maximum cost of these tokens in pico-USD, each at its most expensive kind.

    `output_tokens` is the sum over all choices. `tiers` are the service tiers that the request can
    run in; `None` means every listed tier, because the provider's default may not be the standard
    one. `media` are the kinds other than text that can be charged.
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
    """Return an upper bound of the charges per unit, in pico-USD, including the request fee.

    `counts` are fields of `TokenCounts`; `tiers` is as in `bound_pusd`.
    """
    pusd = price.terms.request_pusd + _units_pusd(price.terms, tiers, counts)
    return -(-pusd * (PPM + price.terms.uplift_ppm) // PPM)


def units_bound_pusd(price: Price, tiers: Collection[str] | None = None, **counts: int) -> int:
    """Return the maximum cost of the units in pico-USD, without the request fee.

    The fee is part of the bound on tokens. Both bounds are rounded separately, but a cost is
    rounded once as a sum, so this bound is one higher if there is a surcharge.
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
    """Return the fee of a request in a tier, or the standard fee if the tier has none."""
    for schedule in terms.schedules:
        if schedule.tier == tier and schedule.request_pusd is not None:
            return schedule.request_pusd
    return terms.request_pusd


def unit_pusd(terms: PriceTerms, kind: TokenKind, tier: str) -> int:
    """Return the price of a unit in a tier, or the standard price if the tier has none."""
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
    """Return the rates for all tokens of a request with this prompt in this tier.

    Raises `UnpricedTierError` for a tier without rates.
    """
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
    """Return the tokens of the whole prompt, as context limits and thresholds count them."""
    return tokens.whole_prompt


def dearest_input(rates: TokenRates, *, audio: bool) -> int:
    """Return the highest rate of a prompt token; without `audio`, of a text token."""
    return max(_of_prompt(rates) if audio else _of_text_prompt(rates))


def dearest_output(rates: TokenRates, *, audio: bool, images: bool) -> int:
    """Return the highest rate of an output token, in pico-USD."""
    return max(_of_outputs[audio, images](rates))


def _seldom_pusd(tokens: TokenCounts, terms: PriceTerms, rates: TokenRates, tier: str) -> int:
    """Return the cost of rarely used kinds, in pico-USD."""
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
