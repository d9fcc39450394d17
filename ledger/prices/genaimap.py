"""Prices from the package `genai-prices`, under the names of the price book.

An import changes only what the package states: where a name already has a price, its other terms
(audio, a service tier, a fee) are kept. Prices by time of day, free prices, and prices finer than a
pico-USD are refused and listed. The installed package is read without network access; nothing here
imports it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from ledger.journals.token_kinds import PER_TOKEN, TokenRates
from ledger.money import MoneyError, usd_per_million_to_pusd, usd_to_pusd
from ledger.prices.bundled import PriceRemark, PriceSeed, usable_seed
from ledger.prices.drafts import PriceDraft
from ledger.prices.rates import (
    KINDS,
    STANDARD,
    Price,
    PriceError,
    PriceTerms,
    TierRates,
    is_unlisted,
    overlay_rates,
    rates_from,
)

BOOK = "genai-prices"
# The package's providers and their names in the price book. The book has no names of the others.
PROVIDERS = {
    "anthropic": "anthropic", "aws": "bedrock", "azure": "azure", "baseten": "baseten",
    "cerebras": "cerebras", "cohere": "cohere", "deepseek": "deepseek",
    "fireworks": "fireworks_ai", "google": "gemini", "groq": "groq", "meta": "meta",
    "minimax": "minimax", "mistral": "mistral", "moonshotai": "moonshot", "novita": "novita",
    "openai": "openai", "openrouter": "openrouter", "perplexity": "perplexity",
    "together": "together_ai", "voyageai": "voyage", "x-ai": "xai", "zai": "zai",
}  # fmt: skip
_KINDS = {term: kind.field for kind in PER_TOKEN for term in kind.genai_terms}
_REQUESTS = "requests_kcount"
_TIERS = {
    ("service_tier", "flex"): "flex",
    ("service_tier", "priority"): "priority",
    ("processing", "batch"): "batch",
}
_DATE = re.compile(r"\b20\d\d-\d\d-\d\d\b")

Kinds = dict[str, int]
Steps = dict[int, Kinds]  # threshold in tokens -> pico-USD by kind


def stated_on(providers: Iterable[Any], at_us: int) -> str | None:
    """Return the latest past day that the data mentions: the data is at least that recent."""
    today = datetime.fromtimestamp(at_us / 1e6, tz=UTC).date().isoformat()
    comments = (model.price_comments or "" for provider in providers for model in provider.models)
    return max((day for text in comments for day in _DATE.findall(text) if day <= today),
               default=None)  # fmt: skip


def seed_from_genai(
    providers: Iterable[Any], known: Mapping[str, Price], *, at_us: int, read_on: str | None
) -> PriceSeed:
    """Return drafts of the prices in force at a time, and the refused rows.

    `providers` are the package's own objects; `known` are the price book's prices in force.
    """
    refused: list[PriceRemark] = []
    drafts: dict[str, PriceDraft] = {}
    cased = {name.lower(): name for name in known}
    for provider in providers:
        ours = PROVIDERS.get(provider.id)
        for model in provider.models if ours else ():
            for name in _names(f"{ours}/", model, cased):
                try:
                    terms = _terms(model, known.get(name), at_us)
                except (PriceError, MoneyError) as error:
                    refused.append(PriceRemark(name, str(error)))
                    continue
                drafts.setdefault(name, _draft(name, terms, provider, model, read_on))
    return usable_seed(drafts.values(), refused)


def _draft(
    name: str, terms: PriceTerms, provider: Any, model: Any, read_on: str | None
) -> PriceDraft:
    verified = _DATE.findall(model.price_comments or "")
    urls = provider.pricing_urls or [None]
    return PriceDraft(
        name=name,
        book=BOOK,
        terms=terms,
        source=urls[0],
        source_date=max([*verified, read_on or ""]) or None,
    )


def _names(prefix: str, model: Any, cased: Mapping[str, str]) -> list[str]:
    """Return the model's own name, and its exact aliases that the price book has."""
    own = prefix + model.id
    aliases = [prefix + equal for equal in _equals(model.match)]
    found = [cased[name] for name in sorted({alias.lower() for alias in aliases}) if name in cased]
    return list(dict.fromkeys([cased.get(own.lower(), own), *found]))


def _equals(clause: Any) -> Iterator[str]:
    for item in getattr(clause, "or_", [clause]):
        if hasattr(item, "equals"):
            yield item.equals


def _terms(model: Any, known: Price | None, at_us: int) -> PriceTerms:
    """Return a model's terms. `unread` lists keys of charges that the terms do not cover."""
    today = datetime.fromtimestamp(at_us / 1e6, tz=UTC).date()
    stated = _in_force(model, today)
    steps = _steps(stated)
    base = steps.pop(0)
    if not base.get("input"):
        raise PriceError("the input has no price")
    if not base.get("output"):
        if known is None or known.terms.rates.output:
            raise PriceError("the output has no price")
        base["output"] = 0
    before = None if known is None else known.terms
    full = _fill_kinds(base, None if before is None else before.rates)
    inclusive = before is not None and _inclusive(steps, before)
    schedules = {
        (STANDARD, above + inclusive): rates_from(overlay_rates(full, kinds))
        for above, kinds in sorted(steps.items())
    }
    for tier, variant in _variants(model, today):
        schedules |= dict(_tier(tier, variant, full, steps, before, inclusive=inclusive))
    if before is not None:
        said = {tier for tier, _ in schedules} | {STANDARD}
        schedules |= {(s.tier, s.above_tokens): s.rates for s in before.schedules
                      if s.tier not in said}  # fmt: skip
    kept = () if before is None else before.schedules
    pictures = {(step.tier, step.above_tokens): step.picture_pusd for step in kept}
    fee = stated.get(_REQUESTS)
    fees = {} if fee else {(step.tier, step.above_tokens): step.request_pusd for step in kept}
    more = [key for key in stated if key not in _KINDS and key != _REQUESTS]
    made = PriceTerms(
        rates_from(full),
        tuple(
            TierRates(*place, rates, pictures.get(place), fees.get(place))
            for place, rates in sorted(schedules.items())
        ),
        inclusive=inclusive,
        unread=tuple(more),
    )
    if before is not None:
        made = replace(
            before,
            rates=made.rates,
            schedules=made.schedules,
            inclusive=made.inclusive,
            unread=tuple(dict.fromkeys((*before.unread, *more))),
        )
    if fee is not None:
        made = replace(made, request_pusd=usd_to_pusd(fee / 1000))
    return made


def _tier(
    tier: str, variant: Mapping[str, Any], full: Kinds, steps: Steps, before: PriceTerms | None,
    *, inclusive: bool,
) -> Iterator[tuple[tuple[str, int], TokenRates]]:  # fmt: skip
    """Yield the schedules of one tier.

    A rate is the stated one, else the one of the earlier price's tier, else the standard one.
    """
    own = _steps(variant)
    stated = own.pop(0)
    had = [] if before is None else [s for s in before.schedules if s.tier == tier]
    low = overlay_rates(full, stated)
    if had and had[0].above_tokens == 0:
        low = _fill_kinds({**stated, "input": low["input"], "output": low["output"]}, had[0].rates)
    yield (tier, 0), rates_from(low)
    for above in sorted({*own, *steps}):
        kinds = {kind: pusd for kind, pusd in steps.get(above, {}).items() if kind not in stated}
        low = overlay_rates(low, kinds | own.get(above, {}))
        yield (tier, above + inclusive), rates_from(low)


def _fill_kinds(stated: Kinds, before: TokenRates | None) -> Kinds:
    """Return the stated kinds, completed by those that the earlier price lists itself."""
    if before is None:
        return stated
    listed = {kind: getattr(before, kind) for kind in KINDS if not is_unlisted(before, kind)}
    return (
        listed | stated if listed["output"] == stated["output"] else overlay_rates(listed, stated)
    )


def _inclusive(steps: Steps, before: PriceTerms) -> bool:
    """Return whether `above 199999` in this data means `from 200000 on` in the earlier price."""
    places = {schedule.above_tokens for schedule in before.schedules}
    return before.inclusive and bool(steps) and all(above + 1 in places for above in steps)


def _steps(stated: Mapping[str, Any]) -> Steps:
    """Return the rates that change at each threshold, from 0 up."""
    steps: Steps = {0: {}}
    for key, kind in _KINDS.items():
        value = stated.get(key)
        if value is None:
            continue
        tiered = not isinstance(value, Decimal)
        pusd = usd_per_million_to_pusd(value.base if tiered else value)
        if pusd or kind in ("input", "output"):  # a free cache looks the same as a missing price
            steps[0][kind] = pusd
        for tier in value.tiers if tiered else ():
            steps.setdefault(tier.start, {})[kind] = usd_per_million_to_pusd(tier.price)
    return steps


def _in_force(model: Any, today: date) -> Mapping[str, Any]:
    """Return the prices of the last condition that holds, or the first prices if none holds."""
    if not isinstance(model.prices, list):
        return _stated_values(model.prices)
    if any(hasattr(price.constraint, "start_time") for price in model.prices):
        raise PriceError("the price depends on the time of day")
    active = [price for price in model.prices if _since(price.constraint) <= today]
    return _stated_values((active or model.prices[:1])[-1].prices)


def _variants(model: Any, today: date) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield service tiers and their prices. If a tier has several, the first in force counts."""
    seen: set[str] = set()
    for price_variant in model.price_variants or ():
        tier = (
            _TIERS.get(next(iter(price_variant.when.items())))
            if len(price_variant.when) == 1
            else None
        )
        stated = _stated_values(price_variant.prices)
        if tier and tier not in seen and stated and _since(price_variant.constraint) <= today:
            seen.add(tier)
            yield tier, stated


def _since(constraint: Any) -> date:
    return date.min if constraint is None else constraint.start_date


def _stated_values(prices: Any) -> Mapping[str, Any]:
    return {key: value for key, value in vars(prices).items() if value is not None}
