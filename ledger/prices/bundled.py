"""The bundled prices: LiteLLM's packaged price map, read without importing LiteLLM.

Names become `provider/model`: the map prefixes keys only sometimes, and a prefixed key wins over a
bare one. Regional surcharges become separate rows (`openai/gpt-5.5#eu`). Rows without a price are
refused and listed. Price files (`files`) override these prices; `diff` computes what an import
would store.
"""

import functools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from ledger.money import PPM
from ledger.prices.drafts import DraftChange, DraftChanges, PriceDraft, diff, draft_faults
from ledger.prices.files import PriceFile, load_price_file, parse_price_file
from ledger.prices.mapterms import (
    MODERATION,
    PICTURES,
    RERANK,
    SPEECH,
    TRANSCRIPTION,
    picture_price,
    terms_of,
    uplifted_region,
)
from ledger.prices.picture_forms import pixels_of, split_key
from ledger.prices.rates import PriceError, PriceTerms, TierRates, rates_from

__all__ = [
    "BOOK",
    "BundledMap",
    "DraftChange",
    "DraftChanges",
    "PriceDraft",
    "PriceFile",
    "PriceRemark",
    "PriceSeed",
    "bundled_map",
    "bundled_seed",
    "diff",
    "load_price_file",
    "normalised",
    "parse_price_file",
    "seed_from_map",
    "seed_of",
    "usable_seed",
]

BOOK = "litellm"
MAP_FILE = "model_prices_and_context_window_backup.json"
# Upload date of the pinned release on the package index: its prices were stated by that day.
RELEASE_DATES = {"1.106.2": "2026-10-21"}
MODES = frozenset(
    {
        "chat",
        "completion",
        "responses",
        "embedding",
        RERANK,
        TRANSCRIPTION,
        MODERATION,
        SPEECH,
        PICTURES,
    }
)
_PROVIDERS = {
    "azure_text": "azure",
    "bedrock_converse": "bedrock",
    "cohere_chat": "cohere",
    "fireworks_ai-embedding-models": "fireworks_ai",
    "text-completion-codestral": "codestral",
    "text-completion-inception": "inception",
    "text-completion-openai": "openai",
}

Row = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class PriceRemark:
    """A note about a row of the price map, for a person to read."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class PriceSeed:
    """Drafts and refused rows of a price map.

    If two rows contradict each other, the first counts. `refused` rows have no price.
    """

    drafts: tuple[PriceDraft, ...]
    refused: tuple[PriceRemark, ...]


class BundledMap(NamedTuple):
    """The text of the installed map and the ISO day on which its prices were stated, if known."""

    text: str
    source_date: str | None


def bundled_map() -> BundledMap:
    """Return the installed package's map. Raises `PriceError` if LiteLLM is not installed."""
    spec = find_spec("litellm")  # finds a top-level package without importing it
    if spec is None or not spec.submodule_search_locations:
        raise PriceError("the package `litellm`, whose price map is the seed, is not installed")
    path = Path(spec.submodule_search_locations[0]) / MAP_FILE
    return BundledMap(path.read_text(encoding="utf-8"), RELEASE_DATES.get(version("litellm")))


def bundled_seed() -> PriceSeed:
    """Return the seed of the installed map."""
    return seed_of(bundled_map())


@functools.lru_cache(maxsize=1)
def seed_of(bundled: BundledMap) -> PriceSeed:
    """Return the map's seed. Cached, because a first start of `serve` reads it twice.

    One reading takes 0.2 s of CPU.
    """
    return seed_from_map(bundled.text, source_date=bundled.source_date)


def seed_from_map(text: str, *, source_date: str | None) -> PriceSeed:
    """Return drafts of every row that has a price, and remarks on the rows that have none."""
    refused: list[PriceRemark] = []
    drafts: dict[str, PriceDraft] = {}
    forms: dict[str, dict[str, tuple[int, Row]]] = {}
    for key, row in _rows(_document(text)):
        name = normalised(key, str(row["litellm_provider"]))
        try:
            if _add_form(forms, key, row):
                continue
            terms = terms_of(row, name)
        except PriceError as error:
            refused.append(PriceRemark(name, str(error)))
            continue
        for draft in _drafts(name, row, terms, source_date):
            drafts.setdefault(draft.name, draft)
    for name, listed in forms.items():
        drafts[name] = _with_forms(name, drafts.get(name), listed, source_date)
    return usable_seed(drafts.values(), refused)


def usable_seed(drafts: Iterable[PriceDraft], refused: Sequence[PriceRemark]) -> PriceSeed:
    """Return the seed of a market list: a price that cannot be charged costs only its own row."""
    checked = [(draft, "; ".join(draft_faults(draft))) for draft in drafts]
    unusable = [PriceRemark(draft.name, faults) for draft, faults in checked if faults]
    usable = tuple(draft for draft, faults in checked if not faults)
    return PriceSeed(usable, (*refused, *unusable))


def _document(text: str) -> Mapping[str, object]:
    try:
        document = json.loads(text, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise PriceError(f"{BOOK}: not JSON: {error}") from error
    if not isinstance(document, dict):
        raise PriceError(f"{BOOK}: must be a mapping from model names to their rows")
    return document


def _add_form(forms: dict[str, dict[str, tuple[int, Row]]], key: str, row: Row) -> bool:
    """Store a row that prices one form of a model's pictures. Return whether it was one."""
    provider = str(row["litellm_provider"])
    found = split_key(key.removeprefix(f"{provider}/")) if row["mode"] == PICTURES else None
    if found is None:
        return False
    model, form = found
    pusd = picture_price(row, pixels_of(form))
    if pusd:
        forms.setdefault(normalised(model, provider), {}).setdefault(form, (pusd, row))
    return bool(pusd)


def _with_forms(
    name: str,
    draft: PriceDraft | None,
    listed: Mapping[str, tuple[int, Row]],
    source_date: str | None,
) -> PriceDraft:
    """Return a model's price with the prices of its picture forms.

    A form that is not listed costs what the most expensive listed one does.
    """
    dearest = max(pusd for pusd, _ in listed.values())
    if draft is None:
        row = next(iter(listed.values()))[1]
        terms = PriceTerms(rates_from({"input": 0, "output": 0}))
        draft = next(_drafts(name, row, terms, source_date))
    terms = draft.terms
    tiers = [TierRates(form, 0, terms.rates, pusd) for form, (pusd, _) in listed.items()]
    schedules = sorted((*terms.schedules, *tiers), key=lambda step: (step.tier, step.above_tokens))
    terms = replace(
        terms,
        schedules=tuple(schedules),
        picture_pusd=max(terms.picture_pusd, dearest),
    )
    return replace(draft, terms=terms)


def normalised(key: str, provider: str) -> str:
    """Return `provider/model` for a key of the map and the provider that its row names."""
    provider = _PROVIDERS.get(provider, provider)
    if provider.startswith("vertex_ai-"):
        provider = "vertex_ai"
    return key if key.startswith(f"{provider}/") else f"{provider}/{key}"


def _rows(document: Mapping[str, object]) -> Iterator[tuple[str, Row]]:
    rows = [
        (key, row)
        for key, row in document.items()
        if isinstance(row, dict)
        and isinstance(row.get("litellm_provider"), str)
        and str(row.get("mode")) in MODES
    ]
    yield from sorted(rows, key=lambda item: "/" not in item[0])


def _drafts(
    name: str, row: Row, terms: PriceTerms, source_date: str | None
) -> Iterator[PriceDraft]:
    source = row.get("source")
    draft = PriceDraft(
        name=name,
        book=BOOK,
        terms=terms,
        source=source if isinstance(source, str) and source.startswith("http") else None,
        source_date=source_date,
        retired_on=_iso_day(row.get("deprecation_date")),
    )
    yield draft
    for region, factor in _uplifts(row):
        raised = replace(terms, uplift_ppm=int((factor - 1) * PPM))
        yield replace(draft, name=f"{name}#{region}", terms=raised)


def _uplifts(row: Row) -> Iterator[tuple[str, Decimal]]:
    """Yield regions with a surcharge and its factor.

    The region is the field's suffix, `regional`, or Anthropic's `us`.
    """
    for field, factor in row.items():
        region = uplifted_region(field)
        if region is not None and isinstance(factor, Decimal) and factor > 1:
            yield region or "regional", factor
    entry = row.get("provider_specific_entry")
    factor = entry.get("us") if isinstance(entry, Mapping) else None
    if isinstance(factor, Decimal) and factor > 1:
        yield "us", factor


def _iso_day(text: object) -> str | None:
    try:
        return date.fromisoformat(str(text)).isoformat()
    except ValueError:
        return None
