"""Usage exports of providers, for those who have no traffic in this ledger.

* OpenAI: its dashboard's export (CSV) and its API's answers (`/usage/completions`, JSON). Buckets
  have `start_time`, `end_time`, `model` and tokens; `input_tokens` includes cached ones.
* Anthropic: its console's export (CSV, by day) and its usage report's answers (JSON).
* Our own `breakeven ledger export` (CSV): one row per attempt.

All faults are reported at once. A bucket hides the busy minutes inside it, so `finest_us` states
the narrowest bucket.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from msgspec.structs import replace as with_terms

from ledger.csvtable import CsvTableError, read_table
from ledger.economics import usageanthropic as anthropic
from ledger.economics.cost import TokenBasis
from ledger.economics.used import UsageBucket, count
from ledger.instants import InstantError, instant_us
from ledger.journals.token_kinds import PER_TOKEN, TOKENS_LIMIT, TokenCounts
from ledger.money import usd_to_pusd_rounded
from ledger.prices.book import PriceBook, prompt_tokens, tier_of
from ledger.prices.rates import (
    STANDARD,
    Price,
    UnpricedTierError,
    cost_pusd,
    rates_for,
    request_fee_pusd,
)

_Row = Callable[[Mapping[str, Any], str, list[str]], UsageBucket | None]
FAULTS_SHOWN = 10
ROWS_LIMIT = 500_000
MINUTE_US = 60 * 10**6
DAY_US = 86_400 * 10**6
_US = 10**6


class UsageFileError(ValueError):
    """A file that is not a usage export; the message lists the reasons by line."""


@dataclass(frozen=True, slots=True)
class UsageFile:
    """A usage export. `finest_us` is the width of the narrowest bucket."""

    shape: str
    used: tuple[UsageBucket, ...]
    start_us: int
    end_us: int
    finest_us: int

    def minutes(self, basis: TokenBasis, names: frozenset[str]) -> list[int]:
        """Return the tokens of every minute of the span.

        A bucket is spread evenly over its minutes.
        """
        found = [0] * ((self.end_us - self.start_us) // MINUTE_US)
        for use in self.used:
            if use.name in names:
                first = (use.start_us - self.start_us) // MINUTE_US
                count = max(1, (use.end_us - use.start_us) // MINUTE_US)
                each, rest = divmod(use.volume(basis), count)
                for place in range(count):
                    found[first + place] += each + (place < rest)
        return found


@dataclass(frozen=True, slots=True)
class PricedUsage:
    """The cost of an export by name, and the names without a price."""

    pusd: Mapping[str, int]
    unpriced: tuple[str, ...]
    other_tier: tuple[str, ...]  # names priced at standard rates, because their tier has none


def parse_usage(data: bytes, name: str) -> UsageFile:
    """Return the usage in an export. Raises `UsageFileError` with every fault."""
    faults: list[str] = []
    try:
        if data.lstrip()[:1] in (b"{", b"["):
            shape, used = _of_json(data, faults)
        else:
            table = read_table(data, name, faults)
            shape, row = _shape(table.columns)
            if len(table.lines) > ROWS_LIMIT:
                raise UsageFileError(f"more than {ROWS_LIMIT:,} rows: export a shorter period")
            used = []
            for line in table.lines:
                bucket = row(line.cells, f"line {line.number}", faults)
                used += [] if bucket is None else [bucket]
    except CsvTableError as error:
        raise UsageFileError(str(error)) from None
    if faults:
        more = len(faults) - FAULTS_SHOWN
        shown = faults[:FAULTS_SHOWN] + ([f"... and {more} more"] if more > 0 else [])
        raise UsageFileError("\n".join(shown))
    used = [use for use in used if use.volume(TokenBasis.INPUT_OUTPUT)]
    if not used:
        raise UsageFileError("the file has no row with tokens")
    start_us, end_us = min(use.start_us for use in used), max(use.end_us for use in used)
    start_us -= start_us % MINUTE_US
    end_us += -end_us % MINUTE_US
    if end_us - start_us > 400 * DAY_US:
        raise UsageFileError("more than 400 days: export a shorter period")
    finest = min(use.end_us - use.start_us for use in used)
    return UsageFile(shape, tuple(used), start_us, end_us, finest)


def priced(file: UsageFile, book: PriceBook) -> PricedUsage:
    """Return the cost of each bucket at the price in force when the bucket began.

    A bucket sums many requests, so the mean prompt decides which long-prompt rates apply.
    """
    sums: dict[str, int] = {}
    missing: set[str] = set()
    other: set[str] = set()
    for use in file.used:
        pusd = use.billed_pusd
        if pusd is None:
            price = book.find(use.name, use.start_us)
            if price is None:
                missing.add(use.name)
                continue
            pusd, listed = _cost(use, price)
            if not listed:
                other.add(use.name)
        sums[use.name] = sums.get(use.name, 0) + pusd
    return PricedUsage(
        {name: pusd for name, pusd in sums.items() if name not in missing},
        tuple(sorted(missing)),
        tuple(sorted(other)),
    )


def _cost(usage_bucket: UsageBucket, price: Price) -> tuple[int, bool]:
    requests = max(1, usage_bucket.requests)
    mean = (
        prompt_tokens(usage_bucket.tokens) // requests
        if usage_bucket.prompt is None
        else usage_bucket.prompt
    )
    listed = True
    try:
        rates = rates_for(price, usage_bucket.tier, mean)
    except UnpricedTierError:
        rates, listed = rates_for(price, STANDARD, mean), False
    fee = request_fee_pusd(price.terms, usage_bucket.tier) * requests
    terms = with_terms(price.terms, rates=rates, schedules=(), request_pusd=fee)
    return cost_pusd(usage_bucket.tokens, with_terms(price, terms=terms)), listed


def _shape(columns: tuple[str, ...]) -> tuple[str, _Row]:
    """Return the format's name by its columns, and the reader of its rows.

    Raises `UsageFileError` if a required column is missing.
    """
    if anthropic.DAY in columns:
        shape, row, wanted = "Anthropic usage (CSV)", anthropic.of_row, anthropic.COLUMNS
    elif "opened_at" in columns:
        wanted = {"input_tokens", "output_tokens", "target", "backend"}
        shape, row = "breakeven ledger export", _ours
    else:
        wanted = {"input_tokens", "output_tokens", "start_time", "model"}
        shape, row = "OpenAI usage (CSV)", _bucket
    missing = sorted(wanted - set(columns))
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        raise UsageFileError(
            f"no column {names}: give OpenAI's or Anthropic's usage export (not a cost export), "
            "grouped by model, or `breakeven ledger export --format csv`"
        )
    return shape, row


def _bucket(row: Mapping[str, Any], where: str, faults: list[str]) -> UsageBucket | None:
    """Return one result of OpenAI's, `None` for a bucket without a model or with a fault."""
    if not row.get("model"):
        if count(row, "input_tokens", where, faults) or count(row, "output_tokens", where, faults):
            faults.append(f"{where}: tokens without a model: export grouped by model")
        return None
    start = count(row, "start_time", where, faults)
    end = count(row, "end_time", where, faults) or start + DAY_US // _US
    whole = count(row, "input_tokens", where, faults)
    cached = count(row, "input_cached_tokens", where, faults)
    written = count(row, "input_cache_write_tokens", where, faults)
    if cached + written > whole:
        faults.append(f"{where}: more cached tokens than input tokens")
        return None
    if not 0 < end - start <= 400 * DAY_US // _US:
        faults.append(f"{where}: its end is not after its start")
        return None
    batch = str(row.get("batch", "")).lower() in ("true", "1")
    name = str(row["model"])
    return UsageBucket(
        start * _US,
        end * _US,
        name if "/" in name else f"openai/{name}",
        "batch" if batch else tier_of(str(row.get("service_tier") or "")),
        count(row, "num_model_requests", where, faults),
        TokenCounts(
            input=whole - cached - written,
            cached=cached,
            cache_write=written,
            output=count(row, "output_tokens", where, faults),
        ),
    )


def _ours(row: Mapping[str, Any], where: str, faults: list[str]) -> UsageBucket | None:
    """Return one attempt: at its cost at an API, at its comparator's cost on an own engine."""
    if not row.get("output_tokens") and not row.get("input_tokens"):
        return None
    try:
        at_us = instant_us(str(row["opened_at"]))
    except InstantError as error:
        faults.append(f"{where}: `opened_at`: {error}")
        return None
    own = row["backend"] == "own"
    name = row.get("compared_with") if own else row["target"]
    if not name:
        return None
    counts = {
        kind.field: count(row, kind.column, where, faults)
        for kind in PER_TOKEN
        if not kind.is_sound
    }
    if max(counts.values()) > TOKENS_LIMIT:
        faults.append(f"{where}: more tokens than a request can have")
        return None
    start = at_us - at_us % MINUTE_US
    billed = _billed_pusd(row.get("compared_usd" if own else "cost_usd"), where, faults)
    return UsageBucket(
        start, start + MINUTE_US, str(name), STANDARD, 1, TokenCounts(**counts), billed
    )


def _billed_pusd(text: Any, where: str, faults: list[str]) -> int | None:
    if not text:
        return None
    try:
        return usd_to_pusd_rounded(Decimal(str(text)))
    except (InvalidOperation, ValueError):
        faults.append(f"{where}: `{text}` is not an amount")
        return None


def _of_json(data: bytes, faults: list[str]) -> tuple[str, list[UsageBucket]]:
    """Return the format's name and the usage in an API's answer: one page, or a list of pages."""
    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        faults.append("it is not JSON")
        return "", []
    shape, found = "OpenAI usage (JSON)", []
    for page in said if isinstance(said, list) else [said]:
        buckets = page.get("data") if isinstance(page, dict) else None
        if not isinstance(buckets, list):
            faults.append(
                "no `data`: give the answer of OpenAI's /v1/organization/usage/completions, or of "
                "Anthropic's /v1/organizations/usage_report/messages"
            )
            break
        for number, bucket in enumerate(buckets, 1):
            results = bucket.get("results") if isinstance(bucket, dict) else None
            for result in results if isinstance(results, list) else []:
                where = f"bucket {number}"
                if not isinstance(result, dict):
                    faults.append(f"{where}: a result is not an object")
                elif "starting_at" in bucket:
                    shape = "Anthropic usage (JSON)"
                    found.append(
                        anthropic.of_result({**result, **_times_of(bucket)}, where, faults)
                    )
                else:
                    found.append(_bucket({**result, **_times_of(bucket)}, where, faults))
    return shape, [record for record in found if record is not None]


def _times_of(bucket: Mapping[str, Any]) -> dict[str, Any]:
    names = ("start_time", "end_time", "starting_at", "ending_at")
    return {name: bucket.get(name) for name in names}
