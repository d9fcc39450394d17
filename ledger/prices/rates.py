"""What a price is made of, and the only functions that multiply tokens by a price.

Every kind of token has a rate in pico-USD, so a cost is exact. Rates that a provider does not
list are the ones it charges instead: cached reads and cache writes as input, reasoning as output,
audio as text. A request whose prompt passes a threshold pays that schedule's rates for all its
tokens. A service tier without rates is refused, never zero. Values are stored as they are.
Sound and searches have rates of their own: a transcription is charged by its tokens where the
answer counts them and the price lists them, else by its seconds.
"""

from collections.abc import Collection, Mapping

import msgspec

from ledger.journals.records import Tokens
from ledger.money import PPM, divide_half_even

STANDARD = "standard"
KINDS = (
    "input", "cached", "cache_write", "cache_write_1h",
    "output", "reasoning", "audio_input", "audio_output",
)  # fmt: skip
# No request is larger: a bound of 2**63 pico-USD on one attempt is checked with it at load.
TOKENS_LIMIT = 100_000_000
AUDIO_MS_LIMIT = 500 * 3_600_000
SEARCHES_LIMIT = 1_000_000
BIGINT_LIMIT = 2**63
MS_PER_S = 1000
_FALLBACK = {
    "cached": "input",
    "cache_write": "input",
    "cache_write_1h": "cache_write",
    "reasoning": "output",
    "audio_input": "input",
    "audio_output": "output",
}


class PriceError(ValueError):
    """A price that cannot be used; the message says which and why."""


class UnpricedTierError(PriceError):
    """The request ran in a service tier that this price does not list."""


class Rates(msgspec.Struct, frozen=True):
    """Pico-USD per token by kind; every kind has a number (`rates_from` fills the unlisted)."""

    input: int
    cached: int
    cache_write: int
    cache_write_1h: int
    output: int
    reasoning: int
    audio_input: int
    audio_output: int


class Schedule(msgspec.Struct, frozen=True):
    """The rates of one service tier for prompts above `above_tokens` (0: every prompt)."""

    tier: str
    above_tokens: int
    rates: Rates


class Terms(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that decides a cost. `schedules` hold what differs from the standard `rates`.

    `inclusive`: a prompt of exactly `above_tokens` already pays the higher rates.
    `uplift_ppm` is a regional surcharge on the whole request, rounded half-even once.
    `second_pusd` is the price of a second of sound, `search_pusd` that of one search of a
    reranking.
    """

    rates: Rates
    schedules: tuple[Schedule, ...] = ()
    request_pusd: int = 0
    uplift_ppm: int = 0
    inclusive: bool = False
    second_pusd: int = 0
    search_pusd: int = 0


class Price(msgspec.Struct, frozen=True, omit_defaults=True):
    """One version of one name's price. Of two books that price a name, the higher rank counts.

    `withdrawn` ends the name in its book from `effective_from_us` on.
    """

    version: int
    name: str  # provider/model
    book: str  # where it was read: "litellm", or a price file's name
    effective_from_us: int
    terms: Terms
    effective_until_us: int | None = None
    rank: int = 0  # 0: bundled; files override it in the order they are configured
    source: str | None = None  # address or contract behind the number
    source_date: str | None = None  # ISO day on which the source said so
    retired_on: str | None = None  # ISO day on which the provider stops serving the model
    simulated: bool = False
    withdrawn: bool = False


def rates_from(listed: Mapping[str, int]) -> Rates:
    """Complete rates from those a provider lists; `input` and `output` must be among them."""
    unknown = set(listed) - set(KINDS)
    if unknown:
        raise PriceError(f"unknown kinds of tokens: {', '.join(sorted(unknown))}")
    if "input" not in listed or "output" not in listed:
        raise PriceError("both `input` and `output` must be priced")
    full = dict(listed)
    for kind, instead in _FALLBACK.items():
        full.setdefault(kind, full[instead])
    return Rates(**full)


def overlaid(below: Mapping[str, int], stated: Mapping[str, int]) -> dict[str, int]:
    """What a schedule states over the rates below it; its output price is reasoning's, too."""
    full = {**below, **stated}
    if "output" in stated and "reasoning" not in stated:
        full.pop("reasoning", None)
    return full


def unlisted(rates: Rates, kind: str) -> bool:
    """Whether a kind costs just what the one it falls back on costs."""
    instead = _FALLBACK.get(kind)
    return instead is not None and getattr(rates, kind) == getattr(rates, instead)


def cost_pusd(tokens: Tokens, price: Price, *, tier: str = STANDARD) -> int:
    """What the attempt costs, exact. Raises `UnpricedTierError` for a tier without rates."""
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
        + terms.request_pusd
    )
    if tokens.reasoning:
        pusd += tokens.reasoning * (rates.reasoning - rates.output)
    if tokens.cache_write or tokens.cache_write_1h:
        pusd += tokens.cache_write * rates.cache_write
        pusd += tokens.cache_write_1h * rates.cache_write_1h
    if tokens.audio_input or tokens.audio_output:
        pusd += tokens.audio_input * rates.audio_input
        pusd += tokens.audio_output * (rates.audio_output - rates.output)
    if tokens.audio_ms or tokens.searches:
        pusd += tokens.searches * terms.search_pusd
        if not (tokens.audio_input and rates.audio_input):
            pusd += divide_half_even(tokens.audio_ms * terms.second_pusd, MS_PER_S)
    return _uplifted(pusd, terms.uplift_ppm) if terms.uplift_ppm else pusd


def bound_pusd(
    price: Price,
    *,
    prompt_tokens: int,
    output_tokens: int,
    n: int = 1,
    tiers: Collection[str] | None = None,
    audio: bool = True,
) -> int:
    """An upper bound of `cost_pusd` for at most these tokens: each at its dearest reachable kind.

    `tiers` are the service tiers the request can run in (`None`: any that is priced, because the
    provider's default may not be the standard one). `audio=False` promises a request without it.
    """
    terms = price.terms
    reachable = [terms.rates] if tiers is None or STANDARD in tiers else []
    for schedule in terms.schedules:
        if schedule.above_tokens > prompt_tokens:
            continue
        if tiers is None or schedule.tier in tiers:
            reachable.append(schedule.rates)
    if not reachable:
        raise UnpricedTierError(f"{price.name} (version {price.version}) has none of {tiers}")
    pusd = (
        prompt_tokens * max(_dearest_input(rates, audio=audio) for rates in reachable)
        + n * output_tokens * max(_dearest_output(rates, audio=audio) for rates in reachable)
        + terms.request_pusd
    )
    return _uplifted(pusd, terms.uplift_ppm) if terms.uplift_ppm else pusd


def beside_bound_pusd(price: Price, *, audio_ms: int = 0, searches: int = 0) -> int:
    """An upper bound of what `cost_pusd` charges for sound and searches, the request's fee in it.

    For sound it stands instead of the bound on tokens, whichever is more; for searches beside it.
    """
    terms = price.terms
    pusd = searches * terms.search_pusd - (-audio_ms * terms.second_pusd // MS_PER_S)
    pusd += terms.request_pusd
    return -(-pusd * (PPM + terms.uplift_ppm) // PPM)


def rates_for(price: Price, tier: str, prompt: int) -> Rates:
    """The rates that all tokens of a request with this prompt pay in this tier."""
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


def prompt_tokens(tokens: Tokens) -> int:
    """The whole prompt, as context limits and thresholds count it."""
    return (
        tokens.input
        + tokens.cached
        + tokens.cache_write
        + tokens.cache_write_1h
        + tokens.audio_input
    )


def _dearest_input(rates: Rates, *, audio: bool) -> int:
    text = max(rates.input, rates.cached, rates.cache_write, rates.cache_write_1h)
    return max(text, rates.audio_input) if audio else text


def _dearest_output(rates: Rates, *, audio: bool) -> int:
    text = max(rates.output, rates.reasoning)
    return max(text, rates.audio_output) if audio else text


def _uplifted(pusd: int, uplift_ppm: int) -> int:
    return divide_half_even(pusd * (PPM + uplift_ppm), PPM)
