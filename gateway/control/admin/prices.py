"""Operations of `breakeven prices`: active prices, doubts, and imports with approval.

The content of a file is always sent along; no operation reads a path. An import is approved with
the digest of the difference that was shown (`approves`), and refused if the difference changed.
"""

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from hashlib import sha256
from typing import Annotated, Any

import msgspec

from gateway.auth import APPLY, PRICES
from gateway.config.settings import Settings
from gateway.control.admin.verb import OperationContext, OperationRefused, list_document, verb
from gateway.control.pricing.configured import names_in_use, price_aliases
from gateway.control.pricing.plain import flag_json, plan_json, price_json, record_json
from gateway.control.pricing.sources import PriceSource, PriceText, source_of
from gateway.followers import FOLLOW_S
from ledger.prices.book import Price, PriceBook
from ledger.prices.bundled import bundled_seed
from ledger.prices.diff import PriceChange, PriceImportPlan, PriceStatus, approved, planned
from ledger.prices.drafts import BUNDLED_RANK
from ledger.prices.flags import PriceDoubt, PriceFlag, flags
from ledger.prices.stored import (
    import_approved,
    load_price_book,
    read_days,
    records_of,
    stored_prices,
)
from ledger.prices.unread_terms import unlimited_terms

LARGEST = 16 * 1024 * 1024  # bytes of a body: LiteLLM's map is two
_All = Annotated[bool, msgspec.Meta(description="all names, not only what the configuration uses")]
_Patterns = Annotated[list[str], msgspec.Meta(description="only names like these: `openai/*`")]


class ShowPricesInput(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(description="provider/model, or a pattern")] | None = None
    everything: _All = False


class CheckPricesInput(msgspec.Struct, forbid_unknown_fields=True):
    everything: _All = False


class PriceSourceInput(msgspec.Struct, forbid_unknown_fields=True):
    source: Annotated[
        str, msgspec.Meta(description="`litellm`, `genai-prices`, or a file's name", max_length=200)
    ]
    content: Annotated[bytes, msgspec.Meta(description="the file, base64")] | None = None
    read_on: Annotated[str, msgspec.Meta(description="YYYY-MM-DD; of a JSON map")] | None = None
    only: _Patterns | None = None
    book: Annotated[str, msgspec.Meta(description="the prices' name in the book")] | None = None


class ImportPricesInput(PriceSourceInput):
    """Input of an import, with the digest of the difference that was shown."""

    approves: Annotated[str, msgspec.Meta(description="as `/prices/diff` told it")] = ""


@verb(
    "GET /prices",
    PRICES,
    "prices show",
    "The prices in force with their doubts; of one name or target also its versions",
    ShowPricesInput,
)
def prices_show(place: OperationContext, given: ShowPricesInput) -> dict[str, Any]:
    settings, name = place.settings, given.name
    book = load_price_book(place.ledger, price_aliases(settings))
    single = name is not None and "*" not in name
    names = [name] if name is not None and single else _names(settings, book, given.everything)
    if name is not None and not single:
        names = [known_name for known_name in book.names() if _like(known_name, [name])]
    asked_names: dict[str, str] = {}  # of a target, by the name that prices it
    if name is not None and single:
        asked_names = {_price_name(settings, name): name}
        names = [*asked_names]
    doubts: dict[str, list[PriceFlag]] = {}
    for flag in _doubts(place, book, names):
        doubts.setdefault(flag.name, []).append(flag)
    shown = []
    for shown_name in names:
        price = book.find(shown_name, place.now_us)
        unread = () if price is None else book.unread_terms(price, place.now_us)
        asked = asked_names.get(shown_name, shown_name)
        shown.append(price_json(asked, price, doubts.get(shown_name, ()), unread))
    if not single:
        return list_document(shown)
    history = [
        record_json(record) for record in records_of(place.ledger, shown[0]["name"] or names[0])
    ]
    return {**shown[0], "tier": _asked_tier(settings, name or ""), "versions": history}


@verb(
    "GET /prices/check",
    PRICES,
    "prices check",
    "Prices that are stale, expired, without a source, implausible, missing or unapproved",
    CheckPricesInput,
)
def prices_check(place: OperationContext, given: CheckPricesInput) -> dict[str, Any]:
    book = load_price_book(place.ledger, price_aliases(place.settings))
    names = _names(place.settings, book, given.everything)
    found = [
        flag_json(doubt)
        for doubt in _doubts(place, book, names)
        if doubt.flag is not PriceDoubt.PARTLY_KNOWN or _concerns_all(book, doubt, place.now_us)
    ]
    return {"checked": len(names), "flags": found}


@verb(
    "POST /prices/diff",
    PRICES,
    "prices diff",
    "What an import would change; stores nothing",
    PriceSourceInput,
    largest=LARGEST,
)
def prices_diff(place: OperationContext, given: PriceSourceInput) -> dict[str, Any]:
    found, plan = _plan_import(place, given)
    return {
        **plan_json(plan),
        "refused": len(found.refused),
        "new_versions": len(plan.changes.rows),
        "approves": _plan_digest(plan),
    }


@verb(
    "POST /prices/import",
    PRICES + APPLY,
    "prices import",
    f"Store an approved difference as new versions; gateways follow within {FOLLOW_S:g} s",
    ImportPricesInput,
    largest=LARGEST,
)
def prices_import(place: OperationContext, given: ImportPricesInput) -> dict[str, Any]:
    found, plan = _plan_import(place, given)
    if given.approves != _plan_digest(plan):
        words = "the changes differ from those that were approved: review the changes again"
        raise OperationRefused(words, kind="prices_moved", param="approves")
    stamp = replace(found.stamp, actor=place.by)
    if given.only:
        stamp = replace(stamp, read_on=None)
    again = partial(_plan_of_source, found, given.only)
    done = import_approved(place.ledger, again, plan, stamp=stamp, at_us=place.now_us)
    return {**plan_json(done), "stored": len(done.changes.rows), "by": stamp.actor}


def _plan_import(
    place: OperationContext, given: PriceSourceInput
) -> tuple[PriceSource, PriceImportPlan]:
    text = None if given.content is None else PriceText(given.source, given.content, given.read_on)
    stored = stored_prices(place.ledger)
    configured = place.settings.prices
    found = source_of(text or given.source, given.book, configured, stored, place.now_us)
    return found, _plan_of_source(found, given.only, stored, place.now_us)


def _plan_digest(plan: PriceImportPlan) -> str:
    """Return the digest of a plan; it changes only if the plan does."""
    told = (plan.book, approved(plan))
    return sha256(msgspec.json.encode(told, order="deterministic")).hexdigest()[:32]


def _plan_of_source(
    found: PriceSource, only: Sequence[str] | None, stored: Sequence[Price], at_us: int
) -> PriceImportPlan:
    return planned(
        stored, found.drafts, book=found.book, only=partial(_like, patterns=only), at_us=at_us
    )


def _like(name: str, patterns: Sequence[str] | None) -> bool:
    return not patterns or any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)


def _price_name(settings: Settings, name: str) -> str:
    """Return the name that prices requests of a target; other names are returned unchanged."""
    provider = settings.providers.get(name.partition("/")[0])
    return name if provider is None else provider.price_name(name)


def _asked_tier(settings: Settings, name: str) -> str | None:
    """Return the service tier that requests of a target use, if its section sets one."""
    provider = settings.providers.get(name.partition("/")[0])
    return None if provider is None else provider.tier


def _names(settings: Settings, book: PriceBook, everything: bool) -> list[str]:
    """Return names that the configuration uses or that were entered; with `everything`, all."""
    used = names_in_use(settings)
    if everything:
        return sorted({*used, *book.names()})
    stated = [
        name
        for name in book.names()
        if any(price.rank > BUNDLED_RANK for versions in book.books_of(name) for price in versions)
    ]
    return sorted({*used, *stated})


def _doubts(place: OperationContext, book: PriceBook, names: Sequence[str]) -> list[PriceFlag]:
    now_us = place.now_us
    found = flags(book, names, now_us, read_on=read_days(place.ledger))
    wanted = {price.name for name in names if (price := book.find(name, now_us))}
    seed = [draft for draft in bundled_seed().drafts if draft.name in wanted]
    plan = planned(stored_prices(place.ledger), seed, book="litellm",
                   only=wanted.__contains__, at_us=now_us)  # fmt: skip
    changed = {entry.name: entry for entry in plan.entries if entry.status is PriceStatus.CHANGED}
    for name in names:
        price = book.find(name, now_us)
        if price is not None and price.name in changed:
            words = f"{_moved_note(changed[price.name])}: `breakeven prices diff --from litellm`"
            found.append(PriceFlag(name, price.version, PriceDoubt.PENDING, words))
    return sorted(found, key=lambda flag: (flag.name, flag.flag))


def _concerns_all(book: PriceBook, doubt: PriceFlag, at_us: int) -> bool:
    """Return whether unread terms apply to plain requests; most apply to hosted tools only."""
    price = book.find(doubt.name, at_us)
    return price is not None and bool(unlimited_terms(book.unread_terms(price, at_us), ()))


def _moved_note(entry: PriceChange) -> str:
    kinds = ", ".join(sorted({amount.kind for amount in entry.amounts})) or "charges not in it"
    return f"the bundled map states another price ({kinds})"


VERBS = (prices_show, prices_check, prices_diff, prices_import)
