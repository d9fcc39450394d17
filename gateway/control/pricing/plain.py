"""Prices, their changes and doubts as plain values, for JSON and tables."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from gateway.clock import moment_text
from ledger.money import PUSD_PER_USD
from ledger.prices.book import Price
from ledger.prices.diff import PER_TOKEN, SHARE, PriceAmount, PriceChange, PriceImportPlan, amounts
from ledger.prices.flags import PriceFlag
from ledger.prices.quotes import picture_rule_of
from ledger.prices.stored import PriceRecord
from ledger.prices.unread_terms import trigger_of

_PER = {PER_TOKEN: 1_000_000, SHARE: 10_000}  # pico-USD per token, millionths


def amount_text(pusd: int | None, unit: str) -> str:
    """Return exact text without exponent: `0.15` USD per million tokens, `0.005` USD, percent."""
    if pusd is None:
        return "-"
    value = Decimal(pusd) / _PER.get(unit, PUSD_PER_USD)
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def beginning(price: Price) -> str | None:
    """Return when the price begins, or `None` if it always applied."""
    return moment_text(price.effective_from_us) if price.effective_from_us > 0 else None


def ending(price: Price) -> str | None:
    """Return when the price ends, or `None` if it has no end."""
    return None if price.effective_until_us is None else moment_text(price.effective_until_us)


def plan_json(plan: PriceImportPlan) -> dict[str, Any]:
    return {
        "book": plan.book,
        "unchanged": plan.changes.unchanged,
        "entries": [_entry_json(entry) for entry in plan.entries],
        "implausible": [{"name": name, "detail": words} for name, words in plan.doubts],
    }


def _entry_json(entry: PriceChange) -> dict[str, Any]:
    return {
        "name": entry.name,
        "status": entry.status.value,
        "from": moment_text(entry.since_us),
        "until": None if entry.until_us is None else moment_text(entry.until_us),
        "before": _brief(entry.before),
        "after": _brief(entry.after),
        "prices": [_amount_json(amount) for amount in entry.amounts],
    }


def _brief(price: Price | None) -> dict[str, Any] | None:
    if price is None:
        return None
    return {"book": price.book, "source": price.source, "source_date": price.source_date}


def _amount_json(price_amount: PriceAmount) -> dict[str, Any]:
    return {
        "tier": price_amount.tier,
        "above_tokens": price_amount.above_tokens,
        "kind": price_amount.kind,
        "unit": price_amount.unit,
        "old": None
        if price_amount.old is None
        else amount_text(price_amount.old, price_amount.unit),
        "new": None
        if price_amount.new is None
        else amount_text(price_amount.new, price_amount.unit),
        "percent": price_amount.percent,
    }


def price_json(
    asked: str, price: Price | None, flags: Sequence[PriceFlag], unread: Sequence[str] = ()
) -> dict[str, Any]:
    """Return a price as JSON. `asked` may be another name than the one that is priced.

    `unread` lists charges that its terms do not state; a request has one if it is `charged_for`.
    """
    shown: dict[str, Any] = {"asked": asked, "flags": [flag_json(flag) for flag in flags]}
    if price is None:
        return {**shown, "name": None}
    return {
        **shown,
        "name": price.name,
        "version": price.version,
        "book": price.book,
        "source": price.source,
        "source_date": price.source_date,
        "from": beginning(price),
        "until": ending(price),
        "simulated": price.simulated,
        "reasoning": "outside" if price.terms.reasoning_outside else "inside",
        "max_reasoning": price.terms.reasoning_limit or None,
        "image_tokens": price.terms.image_rule or picture_rule_of(price) or None,
        "unread": [
            {"term": name, "charged_for": trigger_of(name).value} for name in unread
        ],
        "prices": [
            {"tier": amount.tier, "above_tokens": amount.above_tokens, "kind": amount.kind,
             "unit": amount.unit, "price": amount_text(amount.new, amount.unit)}
            for amount in amounts(price)
        ],
    }  # fmt: skip


def record_json(record: PriceRecord) -> dict[str, Any]:
    price = record.price
    return {
        "version": price.version,
        "book": price.book,
        "from": beginning(price),
        "until": ending(price),
        "withdrawn": price.withdrawn,
        "recorded": moment_text(record.recorded_us),
        "by": record.actor,
        "origin": record.origin,
    }


def flag_json(flag: PriceFlag) -> dict[str, Any]:
    return {
        "name": flag.name,
        "version": flag.version,
        "flag": flag.flag.value,
        "detail": flag.detail,
    }
