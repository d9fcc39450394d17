"""Conversion of one row of LiteLLM's price map to `PriceTerms`, exact or refused.

Amounts are USD per token and must be whole pico-USD. Float noise of the map
(1.6000000000000000001e-06) is rounded half-even. Other inexact, incomplete or non-positive amounts
are refused, because zero may mean a missing price (a zero for caching counts as unlisted: cached
tokens and cache writes cost what input costs). A kind that a schedule omits takes the standard rate
above the same threshold, then the rate of the schedule below; an output price also covers
reasoning. A tier's discount also applies above a threshold and to one-hour cache writes (discounts
stack: ai.google.dev/gemini-api/docs/pricing, platform.claude.com/docs/en/about-claude/pricing).
See `other_charges` for charges left out.
"""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import lru_cache

from msgspec.structs import replace

from ledger.journals.token_kinds import PER_TOKEN, PER_UNIT, TokenRates
from ledger.money import PUSD_PER_USD, MoneyError, usd_to_pusd, usd_to_pusd_rounded
from ledger.prices.rates import (
    STANDARD,
    PriceError,
    PriceTerms,
    TierRates,
    overlay_rates,
    rates_from,
)
from ledger.prices.search_depths import depth_of_term
from ledger.prices.unread_terms import (
    MOST_SEARCHES,
    SEARCH_FEE,
    SEARCH_OF_EVERY_REQUEST,
    unread_in_row,
)

# xAI charges the higher rates from the threshold on, other providers above the threshold
# (litellm 1.106.2, llm_cost_calc/utils.py, read 2026-11-20).
INCLUSIVE_PROVIDERS = frozenset({"xai"})
_KINDS = {term: kind.field for kind in PER_TOKEN for term in kind.map_terms}
_TIERS = {
    None: STANDARD,
    "_batches": "batch",
    "_flex": "flex",
    "_priority": "priority",
    "_balanced": "balanced",
    "_ultrafast": "ultrafast",
}
_KEY = re.compile(
    rf"^({'|'.join(sorted(_KINDS, key=len, reverse=True))})"
    rf"(?:_above_(\d+)(k?)_tokens)?({'|'.join(tier for tier in _TIERS if tier)})?$"
)
# Regional surcharges: `bundled` makes a separate name for each.
_UPLIFT = re.compile(
    r"^regional_(?:processing_uplift_multiplier_(\w+)|endpoint_uplift_multiplier)$"
)
_REQUEST = "input_cost_per_request"
# Rerankers are priced by tokens or by searches (a query in the map). Transcriptions are priced by
# tokens, seconds or both: then the counts in the answer decide. If a second has an input and an
# output price, the higher counts: the map states one charge under both names, or zero under one.
RERANK, TRANSCRIPTION = "rerank", "audio_transcription"  # modes of the map
MODERATION = "moderation"  # nearly always free
SPEECH, PICTURES = "audio_speech", "image_generation"
# In picture rows without token prices, the price of a picture or of a pixel, under input's name.
_PICTURE_AS_INPUT = "input_cost_per_image"
_PIXELS = ("input_cost_per_pixel", "output_cost_per_pixel")
_SPOKEN_SECOND = "output_cost_per_second"  # the same charge as the tokens of sound
_SIZED_PICTURE = re.compile(r"output_cost_per_image_(?!token|batches|flex|priority)([\w.]+)")
# Providers that search on every request. The fee depends on the depth in usage: each depth is a
# tier (docs.perplexity.ai/getting-started/pricing, as in litellm 1.106.2).
SEARCH_PROVIDERS = frozenset({"perplexity"})
# Models that search on every request at any provider: the search is part of the request's fee.
# The map has no field for this.
# OpenAI: in Chat Completions these models search the web before each answer, without a tool in
# the request (developers.openai.com/api/docs/guides/tools-web-search). Perplexity: as above.
# Resellers mark such models in their name (aihubmix `gemini-3-flash-preview-search`).
_ALWAYS_SEARCHES = re.compile(
    r"(?:.*/)?(?:(?:[^/]*[-_.:])?(?:search|websearch|online|grounded|grounding)(?:[-_.:][^/]*)?"
    r"|sonar(?:-pro|-reasoning|-reasoning-pro)?)"
)
_WRITING = frozenset((None, "chat", "completion", "responses"))  # modes that generate text
# Deep research makes many searches per request, counted in usage. No other model has a price of
# citations (docs.perplexity.ai/getting-started/pricing: "search queries", "citation tokens").
_COUNTS_SEARCHES = "citation_cost_per_token"
_BESIDE = {  # by mode
    mode: tuple(kind for kind in PER_UNIT if kind.map_mode == mode)
    for mode in {kind.map_mode for kind in PER_UNIT}
}
_NOISE_PUSD = Decimal("0.000001")
_NAMES_KEPT, _AMOUNTS_KEPT = 1_024, 4_096

Kinds = dict[str, int]  # kind -> pico-USD
Listed = dict[tuple[str, int], Kinds]  # (tier, above tokens) -> what the row states


def terms_of(row: Mapping[str, object], name: str = "") -> PriceTerms:
    """Return the row's terms. Raises `PriceError` if a price is missing, zero or inexact.

    `name` is the model's, which shows whether the model searches on every request.
    """
    listed = _ranges(row) or _listed_amounts(row)
    base = listed.pop((STANDARD, 0), {})
    mode = row.get("mode")
    beside = _beside(row)
    fee, search = _request_pusd(row, name)
    if search:
        beside["search_pusd"] = search
    if mode == "embedding":
        base.setdefault("output", 0)
    elif mode == MODERATION and "input_cost_per_token" in row:
        base = {"input": 0, "output": 0, **base}  # a price of zero that is stated
    elif mode in _BESIDE:
        if mode == PICTURES:
            _complete_pictures(base, beside["picture_pusd"])
        _complete(base, beside=sum(beside.values()))
        if mode == SPEECH and base["input"] and not (base["output"] or any(beside.values())):
            raise PriceError("the output has no price")
        if mode == TRANSCRIPTION and base["input"] and not (base["output"] or any(beside.values())):
            raise PriceError("the output has no price")
    elif not base.get("output"):
        raise PriceError("the output has no price")
    rates, schedules = rates_from(base), tuple(_schedules(listed, base))
    if not schedules and not search:
        schedules = tuple(_depths(row, rates))
    terms = PriceTerms(
        rates,
        schedules,
        request_pusd=fee,
        inclusive=row.get("litellm_provider") in INCLUSIVE_PROVIDERS,
        unread=tuple(other_charges(row, name)),
    )
    return replace(terms, **beside)


def other_charges(row: Mapping[str, object], name: str = "") -> Iterator[str]:
    """Yield names of charges that `terms_of` does not cover (`ledger.prices.unread_terms`)."""
    beside = {term for kind in _BESIDE.get(str(row.get("mode")), ()) for term in kind.map_terms}
    read = {field for field in row if _is_read(field)} | beside
    read |= {_REQUEST, "tiered_pricing"}
    if _searches_always(row, name):
        read.add(SEARCH_FEE)
    if row.get("mode") == SPEECH and row.get("output_cost_per_audio_token"):
        read.add(_SPOKEN_SECOND)
    if row.get("mode") == PICTURES:
        read |= {*_PIXELS, *(field for field in row if _SIZED_PICTURE.fullmatch(field))}
        if not row.get("input_cost_per_token"):
            read.add(_PICTURE_AS_INPUT)
    yield from unread_in_row(row, read)
    ranges = row.get("tiered_pricing")
    stated = (
        [step for step in ranges if isinstance(step, Mapping)] if isinstance(ranges, list) else []
    )
    merged = {field: value for step in stated for field, value in step.items()}
    yield from unread_in_row(merged, {*_KINDS, *row})
    if _searches_always(row, name):
        if not _searches(row) and not row.get(_REQUEST):
            yield SEARCH_OF_EVERY_REQUEST
        elif _COUNTS_SEARCHES in row:
            yield MOST_SEARCHES


def _beside(row: Mapping[str, object]) -> dict[str, int]:
    """Return prices per unit other than tokens (second, search, ...), by field of the terms."""
    if row.get("mode") == PICTURES:
        return {"picture_pusd": picture_price(row)}
    return {
        kind.price: max(_pusd(row, term) or 0 for term in kind.map_terms)
        for kind in _BESIDE.get(str(row.get("mode")), ())
    }


def picture_price(row: Mapping[str, object], pixels: int = 0) -> int:
    """Return the highest price of a picture that a row states, 0 if it states none.

    `pixels` is the size of the picture's form, for rows that are priced per pixel.
    """
    sized = [field for field in row if _SIZED_PICTURE.fullmatch(field)]
    if found := max(_pusd(row, term) or 0 for term in ("output_cost_per_image", *sized)):
        return found
    if row.get("input_cost_per_token"):
        return 0
    by_pixel = sum(_pixel_pusd(row, field) for field in _PIXELS) * pixels
    return _pusd(row, _PICTURE_AS_INPUT) or round(by_pixel)


def _pixel_pusd(row: Mapping[str, object], field: str) -> Decimal:
    value = row.get(field)
    if not isinstance(value, (int, Decimal)) or isinstance(value, bool) or value < 0:
        return Decimal(0)
    return Decimal(value) * PUSD_PER_USD


def _complete_pictures(base: Kinds, picture_pusd: int) -> None:
    """Complete the rates of a picture model. Raises `PriceError` if pictures have no price."""
    if not (picture_pusd or base.get("image_output")):
        raise PriceError("a picture has no price")
    if base.get("image_output"):
        base.setdefault("output", base["image_output"])


def _complete(base: Kinds, *, beside: int) -> None:
    """Complete the rates of a model that is priced per unit.

    Raises `PriceError` if neither tokens nor any unit has a price.
    """
    if not beside and not any(base.values()):
        raise PriceError("neither tokens nor any other unit has a price")
    base.setdefault("input", base.get("audio_input", 0))
    base.setdefault("output", 0)
    base.setdefault("audio_input", base["input"])


def _request_pusd(row: Mapping[str, object], name: str) -> tuple[int, int]:
    """Return the fee of a request, and the price of a search if searches are counted."""
    fee, depths = _pusd(row, _REQUEST) or 0, _searches(row)
    if not depths or not _searches_always(row, name):
        return fee, 0
    search = max(_pusd(depths, depth) or 0 for depth in depths)
    return (fee, search) if _COUNTS_SEARCHES in row else (fee + search, 0)


def _depths(row: Mapping[str, object], rates: TokenRates) -> Iterator[TierRates]:
    """Yield one tier for each search depth, with its request fee."""
    if row.get("litellm_provider") not in SEARCH_PROVIDERS:
        return
    depths, fee = _searches(row), _pusd(row, _REQUEST) or 0
    fees = {depth: _pusd(depths, depth) or 0 for depth in depths}
    for depth in sorted(fees):
        tier = depth_of_term(depth)
        if tier is not None and fees[depth]:
            yield TierRates(tier, 0, rates, request_pusd=fee + fees[depth])


def _searches(row: Mapping[str, object]) -> Mapping[str, object]:
    """Return prices of a search by depth. A single price for all depths is one entry."""
    stated = row.get(SEARCH_FEE)
    if isinstance(stated, Mapping):
        return stated
    return {} if stated is None else {SEARCH_FEE: stated}


def _searches_always(row: Mapping[str, object], name: str) -> bool:
    """Return whether the model searches on every request."""
    if row.get("mode") in _WRITING and _ALWAYS_SEARCHES.fullmatch(name.lower()):
        return True
    return row.get("litellm_provider") in SEARCH_PROVIDERS and bool(_searches(row))


def _listed_amounts(row: Mapping[str, object]) -> Listed:
    listed: Listed = {}
    for field in row:
        amount = _amount_of(field)
        if amount is None:
            continue
        pusd = _pusd(row, field)
        if pusd:
            place, kind = amount
            listed.setdefault(place, {})[kind] = pusd
    return listed


# A map has thousands of rows but about a hundred field names, so each name is parsed once.
@lru_cache(_NAMES_KEPT)
def _amount_of(field: str) -> tuple[tuple[str, int], str] | None:
    """Return tier, threshold and token kind of an amount's field name, `None` for other names."""
    match = _KEY.match(field)
    if match is None:
        return None
    kind, above, thousand, tier = match.groups()
    return (_TIERS[tier], int(above or 0) * (1000 if thousand else 1)), _KINDS[kind]


@lru_cache(_NAMES_KEPT)
def _is_read(field: str) -> bool:
    return _amount_of(field) is not None or uplifted_region(field) is not None


@lru_cache(_NAMES_KEPT)
def uplifted_region(field: str) -> str | None:
    """Return the region in a surcharge's field name, "" without one, `None` for other fields."""
    match = _UPLIFT.match(field)
    return None if match is None else match[1] or ""


def _ranges(row: Mapping[str, object]) -> Listed:
    """Return the rates of `tiered_pricing` by range; a range without output has the row's."""
    ranges = row.get("tiered_pricing")
    listed: Listed = {}
    for stated in ranges if isinstance(ranges, list) else ():
        start = _range_start(stated)
        own = _pusd(row, "output_cost_per_token")
        kinds = {} if own is None else {"output": own}
        for field, kind in _KINDS.items():
            pusd = _pusd(stated, field)
            if pusd:
                kinds[kind] = pusd
        listed[STANDARD, start] = kinds
    return listed


def _range_start(stated: object) -> int:
    """Return the tokens above which a range's rates apply."""
    bounds = stated.get("range") if isinstance(stated, Mapping) else None
    start = bounds[0] if isinstance(bounds, list) and bounds else None
    if isinstance(start, bool) or not isinstance(start, (int, Decimal)) or start < 0:
        raise PriceError(f"`tiered_pricing` has {stated!r}, which is not a range")
    return int(start)


def _schedules(listed: Listed, base: Kinds) -> Iterator[TierRates]:
    thresholds = sorted({above for _, above in listed if above})
    tiers = {tier for tier, _ in listed} | ({STANDARD} if thresholds else set())
    for tier in sorted(tiers):
        own = {} if tier == STANDARD else listed.get((tier, 0), {})
        own |= _in_proportion(base, own, "cache_write_1h", to="cache_write")
        below = overlay_rates(base, own)
        if tier != STANDARD:
            yield TierRates(tier, 0, rates_from(below))
        for above in thresholds:
            standard = listed.get((STANDARD, above), {})
            stated = _as_much_cheaper(base, own, standard) | listed.get((tier, above), {})
            below = overlay_rates(below, stated)
            yield TierRates(tier, above, rates_from(below))


def _as_much_cheaper(base: Kinds, own: Kinds, standard: Kinds) -> Kinds:
    """Return the standard rates above a threshold with the tier's discount applied."""
    found = dict(standard)
    for kind in standard:
        if 0 < own.get(kind, 0) < base.get(kind, 0):
            pusd, rest = divmod(standard[kind] * own[kind], base[kind])
            found[kind] = standard[kind] if rest else pusd
    return found


def _in_proportion(base: Kinds, own: Kinds, kind: str, *, to: str) -> Kinds:
    """Return the rate of a kind that a cheaper tier omits, at the discount of the kind `to`."""
    if kind in own or kind not in base or not 0 < own.get(to, 0) < base.get(to, 0):
        return {}
    pusd, rest = divmod(base[kind] * own[to], base[to])
    return {} if rest else {kind: pusd}


@lru_cache(_AMOUNTS_KEPT, typed=True)
def _exact_pusd(value: int | Decimal) -> int:
    return usd_to_pusd(value)


def _pusd(row: Mapping[str, object], field: str) -> int | None:
    value = row.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)) or value < 0:
        raise PriceError(f"`{field}` is {value!r}, which is not a price")
    try:
        return _exact_pusd(value)
    except MoneyError:
        try:
            pusd = usd_to_pusd_rounded(value)
        except MoneyError as error:
            raise PriceError(f"`{field}`: {error}") from error
        if abs(Decimal(value) * PUSD_PER_USD - pusd) > _NOISE_PUSD:
            raise PriceError(f"`{field}` is {value}, which is finer than a pico-USD") from None
        return pusd
