"""One row of LiteLLM's price map as `PriceTerms`, exact or refused.

Amounts are USD per token and must be whole pico-USD. Binary-float noise of the map's own making
(1.6000000000000000001e-06) is rounded half-even and listed; anything else that is not exact,
complete and above zero is refused, because a price of zero cannot be told from a missing one
(a zero for caching counts as unlisted, so cached tokens and cache writes cost what input costs).
A schedule that leaves a kind open takes it from the standard rates above the same threshold, then
from the schedule below; a stated output price is also the price of reasoning. A discount of a tier
goes on above a threshold and for an hour's cache, as the providers say (ai.google.dev/gemini-api/
docs/pricing; platform.claude.com/docs/en/about-claude/pricing: discounts stack).
Rerankers are priced by tokens or by searches (a query in the map), transcriptions by tokens, by
seconds, or both: then what the answer counts decides. Of two prices for a second, under input and
output, the higher is meant: the map states one charge under both names, or zero under one.
"""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal

from ledger.journals.token_kinds import PER_TOKEN, PER_UNIT
from ledger.money import PUSD_PER_USD, MoneyError, usd_to_pusd, usd_to_pusd_rounded
from ledger.prices.rates import STANDARD, PriceError, PriceTerms, TierRates, overlaid, rates_from

# xAI charges the higher rates from the threshold on, the others above it
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
_REQUEST = "input_cost_per_request"
RERANK, TRANSCRIPTION = "rerank", "audio_transcription"  # modes of the map
# Providers whose every request is a search with a fee by its depth, which usage does not report:
# the dearest is charged (docs.perplexity.ai/getting-started/pricing, as in litellm 1.106.2).
SEARCH_PROVIDERS = frozenset({"perplexity"})
_SEARCH = "search_context_cost_per_query"
_BESIDE = {  # by mode
    mode: tuple(kind for kind in PER_UNIT if kind.map_mode == mode)
    for mode in {kind.map_mode for kind in PER_UNIT}
}
_NOISE_PUSD = Decimal("0.000001")

Kinds = dict[str, int]  # kind -> pico-USD
Listed = dict[tuple[str, int], Kinds]  # (tier, above tokens) -> what the row states


def terms_of(row: Mapping[str, object], noise: list[str]) -> PriceTerms:
    """The row's terms; `noise` receives the fields that were rounded. Raises `PriceError`."""
    listed = _ranges(row, noise) or _listed(row, noise)
    base = listed.pop((STANDARD, 0), {})
    mode = row.get("mode")
    beside = _beside(row, noise)
    if mode == "embedding":
        base.setdefault("output", 0)
    elif mode in _BESIDE:
        _complete(base, beside=sum(beside.values()))
        if mode == TRANSCRIPTION and base["input"] and not (base["output"] or any(beside.values())):
            raise PriceError("the output has no price")
    elif not base.get("output"):
        raise PriceError("the output has no price")
    return PriceTerms(
        rates_from(base),
        tuple(_schedules(listed, base)),
        request_pusd=_request_pusd(row, noise),
        inclusive=row.get("litellm_provider") in INCLUSIVE_PROVIDERS,
        **beside,
    )


def other_charges(row: Mapping[str, object]) -> Iterator[str]:
    """Fields that charge for something other than the kinds of tokens that are priced here."""
    beside = {term for kind in _BESIDE.get(str(row.get("mode")), ()) for term in kind.map_terms}
    for field, value in row.items():
        charges = "_cost" in field or field in ("off_peak_pricing", "provider_specific_entry")
        known = field == _REQUEST or field in beside
        if charges and value and not known and not _KEY.match(field):
            yield field


def _beside(row: Mapping[str, object], noise: list[str]) -> dict[str, int]:
    """Price of a second of sound or of a search, by its field of the terms, if it has one."""
    return {
        kind.price: max(_pusd(row, term, noise) or 0 for term in kind.map_terms)
        for kind in _BESIDE.get(str(row.get("mode")), ())
    }


def _complete(base: Kinds, *, beside: int) -> None:
    """The rates of what is priced by something else, too: only all of nothing is no price."""
    if not beside and not any(base.values()):
        raise PriceError("neither tokens nor seconds nor searches have a price")
    base.setdefault("input", base.get("audio_input", 0))
    base.setdefault("output", 0)
    base.setdefault("audio_input", base["input"])


def _request_pusd(row: Mapping[str, object], noise: list[str]) -> int:
    fee = _pusd(row, _REQUEST, noise) or 0
    depths = row.get(_SEARCH)
    if row.get("litellm_provider") not in SEARCH_PROVIDERS or not isinstance(depths, Mapping):
        return fee
    return fee + max(_pusd(depths, depth, noise) or 0 for depth in depths)


def _listed(row: Mapping[str, object], noise: list[str]) -> Listed:
    listed: Listed = {}
    for field in row:
        match = _KEY.match(field)
        if match is None:
            continue
        pusd = _pusd(row, field, noise)
        if pusd:
            kind, above, thousand, tier = match.groups()
            place = (_TIERS[tier], int(above or 0) * (1000 if thousand else 1))
            listed.setdefault(place, {})[_KINDS[kind]] = pusd
    return listed


def _ranges(row: Mapping[str, object], noise: list[str]) -> Listed:
    """`tiered_pricing`: each range states its own rates; output may be the model's."""
    ranges = row.get("tiered_pricing")
    listed: Listed = {}
    for stated in ranges if isinstance(ranges, list) else ():
        own = _pusd(row, "output_cost_per_token", noise)
        kinds = {} if own is None else {"output": own}
        for field, kind in _KINDS.items():
            pusd = _pusd(stated, field, noise)
            if pusd:
                kinds[kind] = pusd
        listed[STANDARD, int(stated["range"][0])] = kinds
    return listed


def _schedules(listed: Listed, base: Kinds) -> Iterator[TierRates]:
    thresholds = sorted({above for _, above in listed if above})
    tiers = {tier for tier, _ in listed} | ({STANDARD} if thresholds else set())
    for tier in sorted(tiers):
        own = {} if tier == STANDARD else listed.get((tier, 0), {})
        own |= _in_proportion(base, own, "cache_write_1h", to="cache_write")
        below = overlaid(base, own)
        if tier != STANDARD:
            yield TierRates(tier, 0, rates_from(below))
        for above in thresholds:
            standard = listed.get((STANDARD, above), {})
            stated = _as_much_cheaper(base, own, standard) | listed.get((tier, above), {})
            below = overlaid(below, stated)
            yield TierRates(tier, above, rates_from(below))


def _as_much_cheaper(base: Kinds, own: Kinds, standard: Kinds) -> Kinds:
    """The standard rates above a threshold, cheaper in a tier by as much as they are below it."""
    found = dict(standard)
    for kind in standard:
        if 0 < own.get(kind, 0) < base.get(kind, 0):
            pusd, rest = divmod(standard[kind] * own[kind], base[kind])
            found[kind] = standard[kind] if rest else pusd
    return found


def _in_proportion(base: Kinds, own: Kinds, kind: str, *, to: str) -> Kinds:
    """A kind that a cheaper tier leaves open, cheaper by as much as another that it states."""
    if kind in own or kind not in base or not 0 < own.get(to, 0) < base.get(to, 0):
        return {}
    pusd, rest = divmod(base[kind] * own[to], base[to])
    return {} if rest else {kind: pusd}


def _pusd(row: Mapping[str, object], field: str, noise: list[str]) -> int | None:
    value = row.get(field)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)) or value < 0:
        raise PriceError(f"`{field}` is {value!r}: no price")
    try:
        return usd_to_pusd(value)
    except MoneyError:
        pusd = usd_to_pusd_rounded(value)
        if abs(Decimal(value) * PUSD_PER_USD - pusd) > _NOISE_PUSD:
            raise PriceError(f"`{field}` is {value}: finer than a pico-USD") from None
        noise.append(f"{field} {value}")
        return pusd
