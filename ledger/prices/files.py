"""Price files: negotiated rates, simulated providers, and names that the map lacks.

Files are strict YAML. Decimal numbers are exact (0.15 is 15/100, not the nearest binary float). A
file overrides the bundled map, and a later file an earlier one, for the names that it prices:

    source: contract 2026-17          # or per price
    source_date: 2026-11-01
    aliases: {openai/our-deployment: openai/gpt-4o}
    prices:
      openai/gpt-4o-mini:
        usd_per_million: {input: 0.12, cached: 0.06, output: 0.48}
        tiers: {batch: {input: 0.06, output: 0.24}}
        above: [{tokens: 200000, usd_per_million: {input: 0.24, output: 0.96}}]
        from: 2026-11-01              # UTC days; `until` is inclusive
      cohere/rerank-v3.5: {usd_per_search: 0.002}
      perplexity/sonar-deep-research:
        usd_per_million: {input: 2, output: 8}
        usd_per_search: 0.005
        max_searches: 60              # per request; budgets have no upper bound without it
        reasoning: outside            # reasoning tokens do not count towards `max_tokens`
        max_reasoning: 65536          # their maximum; default: the model's longest answer
        image_tokens: openai-tiles    # counts tokens of input pictures (`picture_tokens.py`)
        complete: true                # no other charges of the market list apply
      openai/whisper-1: {usd_per_second: 0.0001}
      openai/tts-1: {usd_per_character: 0.000015}
      openai/dall-e-3:
        usd_per_picture: 0.12         # for forms that are not listed: state the highest price
        pictures: {1024x1024: 0.04, 1024x1792: 0.08, hd/1024x1024: 0.08, hd/1024x1792: 0.12}
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace
from yaml.constructor import ConstructorError

from ledger.journals.token_kinds import PER_UNIT, TokenRates
from ledger.money import MoneyError, usd_per_million_to_pusd, usd_to_pusd
from ledger.prices.book import tier_of
from ledger.prices.drafts import PriceDraft
from ledger.prices.picture_forms import picture_form
from ledger.prices.picture_tokens import RULES
from ledger.prices.rates import (
    STANDARD,
    PriceError,
    PriceTerms,
    TierRates,
    overlay_rates,
    rates_from,
)
from ledger.yamltext import BoundedLoader

_US_PER_S = 1_000_000
_WHOLE = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_TOP = frozenset({"source", "source_date", "aliases", "prices"})
_PER_UNIT = {kind.price: kind.term for kind in PER_UNIT}
_PRICE = frozenset(
    {
        "usd_per_million", "above", "tiers", "usd_per_request", "uplift_ppm", "inclusive",
        *_PER_UNIT.values(),
        "pictures", "max_searches", "reasoning", "max_reasoning", "image_tokens", "complete",
        "source", "source_date", "from", "until", "simulated",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PriceFile:
    drafts: tuple[PriceDraft, ...]
    aliases: Mapping[str, str] = field(default_factory=dict)


def load_price_file(path: Path, *, rank: int) -> PriceFile:
    """Read and check a file. `rank` is its position among the configured files, from 1.

    Raises `PriceError` with every fault.
    """
    return parse_price_file(read_price_file(path), book=path.name, rank=rank)


def read_price_file(path: Path) -> str:
    """Return the file's text. Raises `PriceError` if the file cannot be opened."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise PriceError(f"{path}: {error.strerror}") from error


def parse_price_file(text: str, *, book: str, rank: int) -> PriceFile:
    """Return the file's prices and aliases.

    Raises `PriceError` with every fault and its place.
    """
    try:
        document = yaml.load(text, Loader=_DecimalLoader)  # noqa: S506  (a SafeLoader)
    except yaml.YAMLError as error:
        raise PriceError(f"{book}: not YAML: {error}") from error
    top = _mapping(document, book, _TOP)
    faults: list[str] = []
    drafts: list[PriceDraft] = []
    for name, stated in _mapping(top.get("prices"), f"{book}: prices").items():
        for row in stated if isinstance(stated, list) else [stated]:
            try:
                drafts.append(_draft(name, row, top, book=book, rank=rank))
            except (PriceError, MoneyError) as error:
                faults.append(f"{book}: prices.{name}: {error}")
    if faults:
        raise PriceError("; ".join(faults))
    aliases = _mapping(top.get("aliases") or {}, f"{book}: aliases")
    return PriceFile(tuple(drafts), {name: str(to) for name, to in aliases.items()})


class _DecimalLoader(BoundedLoader):
    """A `yaml.SafeLoader` that reads numbers in decimal only and refuses repeated keys.

    YAML reads `010` as 8 and `1:30` as 90, and of two equal keys it keeps the last: each of them
    would be a price that nobody wrote.
    """

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        stated: set[str] = set()
        for key, _ in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else "<<"
            if name in stated:
                raise ConstructorError(None, None, f"`{name}` is stated twice", key.start_mark)
            stated |= {name} - {"<<"}
        return node


def _decimal(loader: _DecimalLoader, node: yaml.ScalarNode) -> Decimal:
    number = Decimal(loader.construct_scalar(node).replace("_", ""))
    if number.is_snan():  # a signalling NaN raises on every operation, comparisons included
        raise ValueError(node.value)
    return number


def _whole(loader: _DecimalLoader, node: yaml.ScalarNode) -> int:
    digits = loader.construct_scalar(node).replace("_", "")
    if _WHOLE.fullmatch(digits) is None:
        raise ValueError(f"write `{node.value}` in decimal, or in quotes where it is a text")
    return int(digits)


_DecimalLoader.add_constructor("tag:yaml.org,2002:float", _decimal)
_DecimalLoader.add_constructor("tag:yaml.org,2002:int", _whole)


def _draft(
    name: str, stated: object, top: Mapping[str, object], *, book: str, rank: int
) -> PriceDraft:
    row = _mapping(stated, "the price", _PRICE)
    until = _day_us(row, "until")
    source = row.get("source", top.get("source"))
    source_date = _day(row if "source_date" in row else top, "source_date")
    return PriceDraft(
        name=name,
        book=book,
        terms=_terms(row),
        rank=rank,
        source=None if source is None else str(source),
        source_date=None if source_date is None else source_date.isoformat(),
        simulated=_flag(row, "simulated"),
        effective_from_us=_day_us(row, "from"),
        effective_until_us=None if until is None else until + 86_400 * _US_PER_S,
    )


def _terms(row: Mapping[str, object]) -> PriceTerms:
    beside = any(row.get(name) is not None for name in _PER_UNIT.values())
    base = _kinds(row.get("usd_per_million", {} if beside else None))
    if beside:
        base.setdefault("input", base.get("audio_input", 0))
        base.setdefault("output", 0)
    schedules = tuple(_schedules(row, base))
    terms = PriceTerms(
        rates_from(base),
        schedules,
        request_pusd=_amount(row, "usd_per_request"),
        uplift_ppm=_count(row, "uplift_ppm"),
        inclusive=_flag(row, "inclusive"),
        complete=_flag(row, "complete"),
        searches_limit=_count(row, "max_searches"),
        reasoning_outside=_is_outside(row),
        reasoning_limit=_count(row, "max_reasoning"),
        image_rule=_image_rule(row),
    )
    return replace(terms, **{price: _amount(row, name) for price, name in _PER_UNIT.items()})


def _schedules(row: Mapping[str, object], base: Mapping[str, int]) -> list[TierRates]:
    """Return the rates of tiers and of prompts above thresholds.

    Kinds that a step omits cost the same as in its tier.
    """
    rates: dict[str, Mapping[str, int]] = {STANDARD: base}
    for word, stated in _mapping(row.get("tiers") or {}, "tiers").items():
        tier = tier_of(word)
        if tier in rates:
            words = (
                "the standard one: state it beside `tiers`" if tier == STANDARD else "stated twice"
            )
            raise PriceError(f"tiers: `{word}` is {words}")
        rates[tier] = overlay_rates(base, _kinds(stated))
    found = [TierRates(tier, 0, rates_from(rates[tier])) for tier in rates if tier != STANDARD]
    above = row.get("above") or []
    if not isinstance(above, list):
        raise PriceError("`above` must be a list")
    for step in above:
        stated = _mapping(step, "above", frozenset({"tokens", "tier", "usd_per_million"}))
        tier = tier_of(str(stated.get("tier", STANDARD)))
        below = rates.get(tier, base)
        kinds = overlay_rates(below, _kinds(stated.get("usd_per_million")))
        found.append(TierRates(tier, _count(stated, "tokens"), rates_from(kinds)))
    found += _picture_forms(row, rates_from(base))
    return sorted(found, key=lambda schedule: (schedule.tier, schedule.above_tokens))


def _picture_forms(row: Mapping[str, object], rates: TokenRates) -> list[TierRates]:
    """Return the prices of pictures by form: `SIZE`, `QUALITY` or `QUALITY/SIZE`."""
    found = []
    for form, usd in _mapping(row.get("pictures") or {}, "pictures").items():
        if picture_form(form) != form:
            raise PriceError(f"pictures: `{form}` is written `{picture_form(form)}`")
        pusd = usd_to_pusd(_number(usd, form))
        found.append(TierRates(form, 0, rates, pusd))
    if found and row.get("usd_per_picture") is None:
        raise PriceError(
            "pictures: `usd_per_picture`, the price of any other form, is required too"
        )
    return found


def _flag(row: Mapping[str, object], name: str) -> bool:
    value = row.get(name, False)
    if not isinstance(value, bool):
        raise PriceError(f"{name}: {value!r} is neither `true` nor `false`")
    return value


def _is_outside(row: Mapping[str, object]) -> bool:
    word = row.get("reasoning", "inside")
    if word not in ("inside", "outside"):
        raise PriceError(f"reasoning: {word!r} is neither `inside` nor `outside`")
    return word == "outside"


def _image_rule(row: Mapping[str, object]) -> str:
    rule = row.get("image_tokens", "")
    if not isinstance(rule, str) or (rule and rule not in RULES):
        raise PriceError(f"image_tokens: {rule!r} is none of {', '.join(RULES)}")
    return rule


def _kinds(stated: object) -> dict[str, int]:
    return {
        kind: usd_per_million_to_pusd(_number(usd, kind))
        for kind, usd in _mapping(stated, "usd_per_million").items()
    }


def _mapping(
    value: object, where: str, known: frozenset[str] | None = None
) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise PriceError(f"{where}: must be a mapping")
    unknown = [str(key) for key in value if known is not None and key not in known]
    if unknown:
        raise PriceError(f"{where}: unknown key {', '.join(unknown)}")
    return {str(key): item for key, item in value.items()}


def _number(value: object, where: str) -> Decimal | int:
    if isinstance(value, bool) or not isinstance(value, (Decimal, int)):
        raise PriceError(f"{where}: {value!r} is not a number")
    return value


def _amount(row: Mapping[str, object], name: str) -> int:
    return usd_to_pusd(_number(row.get(name, 0), name))


def _count(row: Mapping[str, object], name: str) -> int:
    value = row.get(name, 0)
    if type(value) is not int:
        raise PriceError(f"{name}: {value!r} is not a whole number")
    return value


def _day(row: Mapping[str, object], name: str) -> date | None:
    day = row.get(name)
    if day is not None and type(day) is not date:
        raise PriceError(f"{name}: {day!r} is not a date such as 2026-11-01")
    return day if isinstance(day, date) else None


def _day_us(row: Mapping[str, object], name: str) -> int | None:
    """Return the first microsecond of a UTC day."""
    day = _day(row, name)
    if day is None:
        return None
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp()) * _US_PER_S
