"""A provider's usage export read into what was used when: for who has no traffic in these books.

* OpenAI's usage, as its dashboard exports it (CSV) and as its API answers (`/usage/completions`,
  JSON): buckets with `start_time`, `end_time`, `model` and tokens; cached ones are inside
  `input_tokens`;
* our own `breakeven ledger export` (CSV): one row an attempt.

Pure. Every fault is told at once. What an export cannot say stays unsaid: within a bucket of a day
nobody sees the busy minutes, so `finest_us` tells how coarse it is.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from msgspec.structs import replace as with_terms

from ledger.csvtable import read_table
from ledger.economics.cost import TokenBasis
from ledger.journals.records import Tokens
from ledger.money import usd_to_pusd_rounded
from ledger.prices.book import PriceBook, prompt_tokens, tier_of
from ledger.prices.rates import (
    STANDARD,
    TOKENS_LIMIT,
    Price,
    PriceError,
    UnpricedTierError,
    cost_pusd,
    rates_for,
)

FAULTS_SHOWN = 10
ROWS_LIMIT = 500_000
COUNT_LIMIT = 10**15  # tokens of one bucket: beyond it somebody wrote another figure there
MINUTE_US = 60 * 10**6
DAY_US = 86_400 * 10**6
_US = 10**6


class UsageFileError(ValueError):
    """A file that is no usage export; the message says why, line by line."""


@dataclass(frozen=True, slots=True)
class Used:
    """What one bucket used of one model. `name` is the price book's; `tier` a service tier.

    `billed_pusd`: what our own export says it cost.
    """

    start_us: int
    end_us: int
    name: str
    tier: str
    requests: int
    tokens: Tokens
    billed_pusd: int | None = None

    def volume(self, basis: TokenBasis) -> int:
        prompt = 0 if basis is TokenBasis.OUTPUT else prompt_tokens(self.tokens)
        return prompt + self.tokens.output


@dataclass(frozen=True, slots=True)
class UsageFile:
    """`finest_us`: the width of the narrowest bucket."""

    shape: str
    used: tuple[Used, ...]
    start_us: int
    end_us: int
    finest_us: int

    def minutes(self, basis: TokenBasis, names: frozenset[str]) -> list[int]:
        """Tokens in every minute of the span; a bucket is spread evenly over its own."""
        found = [0] * ((self.end_us - self.start_us) // MINUTE_US)
        for one in self.used:
            if one.name in names:
                first = (one.start_us - self.start_us) // MINUTE_US
                count = max(1, (one.end_us - one.start_us) // MINUTE_US)
                each, rest = divmod(one.volume(basis), count)
                for place in range(count):
                    found[first + place] += each + (place < rest)
        return found


@dataclass(frozen=True, slots=True)
class Priced:
    """The whole export at a price book: by name, what it cost; and the names without a price."""

    pusd: Mapping[str, int]
    unpriced: tuple[str, ...]
    other_tier: tuple[str, ...]  # priced at standard rates: their tier has none


def parse_usage(data: bytes, name: str) -> UsageFile:
    """Raises `UsageFileError`."""
    faults: list[str] = []
    try:
        if data.lstrip()[:1] in (b"{", b"["):
            shape, used = "OpenAI usage (JSON)", list(_pages(data, faults))
        else:
            table = read_table(data, name, faults)
            ours = "opened_at" in table.columns
            shape = "breakeven ledger export" if ours else "OpenAI usage (CSV)"
            _expect(table.columns, ours=ours)
            row = _ours if ours else _bucket
            if len(table.lines) > ROWS_LIMIT:
                raise UsageFileError(f"more than {ROWS_LIMIT:,} rows: export a shorter time")
            used = []
            for line in table.lines:
                one = row(line.cells, f"line {line.number}", faults)
                used += [] if one is None else [one]
    except PriceError as error:
        raise UsageFileError(str(error)) from None
    if faults:
        more = len(faults) - FAULTS_SHOWN
        shown = faults[:FAULTS_SHOWN] + ([f"... and {more} more"] if more > 0 else [])
        raise UsageFileError("\n".join(shown))
    used = [one for one in used if one.volume(TokenBasis.INPUT_OUTPUT)]
    if not used:
        raise UsageFileError("it has no row with tokens")
    start_us, end_us = min(one.start_us for one in used), max(one.end_us for one in used)
    start_us -= start_us % MINUTE_US
    end_us += -end_us % MINUTE_US
    if end_us - start_us > 400 * DAY_US:
        raise UsageFileError("more than 400 days: export a shorter time")
    finest = min(one.end_us - one.start_us for one in used)
    return UsageFile(shape, tuple(used), start_us, end_us, finest)


def priced(file: UsageFile, book: PriceBook) -> Priced:
    """Each bucket at the price in force when it began.

    A bucket adds up many requests: which rates a long prompt pays is told by the mean prompt.
    """
    sums: dict[str, int] = {}
    missing: set[str] = set()
    other: set[str] = set()
    for one in file.used:
        pusd = one.billed_pusd
        if pusd is None:
            price = book.find(one.name, one.start_us)
            if price is None:
                missing.add(one.name)
                continue
            pusd, listed = _cost(one, price)
            if not listed:
                other.add(one.name)
        sums[one.name] = sums.get(one.name, 0) + pusd
    return Priced(
        {name: pusd for name, pusd in sums.items() if name not in missing},
        tuple(sorted(missing)),
        tuple(sorted(other)),
    )


def _cost(one: Used, price: Price) -> tuple[int, bool]:
    requests = max(1, one.requests)
    mean = prompt_tokens(one.tokens) // requests
    listed = True
    try:
        rates = rates_for(price, one.tier, mean)
    except UnpricedTierError:
        rates, listed = rates_for(price, STANDARD, mean), False
    fee = price.terms.request_pusd * requests
    terms = with_terms(price.terms, rates=rates, schedules=(), request_pusd=fee)
    return cost_pusd(one.tokens, with_terms(price, terms=terms)), listed


def _expect(columns: tuple[str, ...], *, ours: bool) -> None:
    wanted = {"input_tokens", "output_tokens"}
    wanted |= {"target", "backend"} if ours else {"start_time", "model"}
    missing = sorted(wanted - set(columns))
    if missing:
        names = ", ".join(f"`{one}`" for one in missing)
        raise UsageFileError(
            f"no column {names}: give OpenAI's usage export (not its cost export), grouped by "
            "model, or `breakeven ledger export --format csv`"
        )


def _bucket(row: Mapping[str, Any], where: str, faults: list[str]) -> Used | None:
    """One result of OpenAI's; a bucket without use has no model."""
    if not row.get("model"):
        if _count(row, "input_tokens", where, faults) or _count(
            row, "output_tokens", where, faults
        ):
            faults.append(f"{where}: tokens without a model: export grouped by model")
        return None
    start = _count(row, "start_time", where, faults)
    end = _count(row, "end_time", where, faults) or start + DAY_US // _US
    whole = _count(row, "input_tokens", where, faults)
    cached = _count(row, "input_cached_tokens", where, faults)
    written = _count(row, "input_cache_write_tokens", where, faults)
    if cached + written > whole:
        faults.append(f"{where}: more cached tokens than input tokens")
        return None
    if not 0 < end - start <= 400 * DAY_US // _US:
        faults.append(f"{where}: its end is not after its start")
        return None
    batch = str(row.get("batch", "")).lower() in ("true", "1")
    name = str(row["model"])
    return Used(
        start * _US,
        end * _US,
        name if "/" in name else f"openai/{name}",
        "batch" if batch else tier_of(str(row.get("service_tier") or "")),
        _count(row, "num_model_requests", where, faults),
        Tokens(
            input=whole - cached - written,
            cached=cached,
            cache_write=written,
            output=_count(row, "output_tokens", where, faults),
        ),
    )


def _ours(row: Mapping[str, Any], where: str, faults: list[str]) -> Used | None:
    """One attempt: an API's at what it was charged, an own engine's at its comparator."""
    if not row.get("output_tokens") and not row.get("input_tokens"):
        return None
    try:
        at = datetime.fromisoformat(str(row["opened_at"]))
    except ValueError:
        faults.append(f"{where}: `{row['opened_at']}` is no time")
        return None
    at_us = int(at.astimezone(UTC).timestamp()) * _US
    own = row["backend"] == "own"
    name = row.get("compared_with") if own else row["target"]
    if not name:
        return None
    kinds = ("input", "cached", "cache_write", "cache_write_1h", "output", "reasoning")
    counts = {kind: _count(row, f"{kind}_tokens", where, faults) for kind in kinds}
    if max(counts.values()) > TOKENS_LIMIT:
        faults.append(f"{where}: more tokens than a request can have")
        return None
    start = at_us - at_us % MINUTE_US
    billed = _billed(row.get("compared_usd" if own else "cost_usd"), where, faults)
    return Used(start, start + MINUTE_US, str(name), STANDARD, 1, Tokens(**counts), billed)


def _billed(text: Any, where: str, faults: list[str]) -> int | None:
    if not text:
        return None
    try:
        return usd_to_pusd_rounded(Decimal(str(text)))
    except (InvalidOperation, ValueError):
        faults.append(f"{where}: `{text}` is no amount")
        return None


def _count(row: Mapping[str, Any], name: str, where: str, faults: list[str]) -> int:
    text = str(row.get(name) if row.get(name) is not None else "").strip()
    if not text:
        return 0
    number = text.removesuffix(".0")
    if not (number.isascii() and number.isdecimal()) or int(number) > COUNT_LIMIT:
        faults.append(f"{where}, column `{name}`: `{text}` is no count")
        return 0
    return int(number)


def _pages(data: bytes, faults: list[str]) -> Iterator[Used]:
    """Answers of the API: one page, or a list of them."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        faults.append("it is no JSON")
        return
    for page in said if isinstance(said, list) else [said]:
        buckets = page.get("data") if isinstance(page, dict) else None
        if not isinstance(buckets, list):
            faults.append("no `data`: give the answer of /v1/organization/usage/completions")
            return
        for number, bucket in enumerate(buckets, 1):
            results = bucket.get("results") if isinstance(bucket, dict) else None
            for result in results if isinstance(results, list) else []:
                times = {name: bucket.get(name) for name in ("start_time", "end_time")}
                one = _bucket({**result, **times}, f"bucket {number}", faults)
                if one is not None:
                    yield one
