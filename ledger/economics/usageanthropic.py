"""Anthropic's usage exports: the console's table by day, and the usage report's results.

Uncached input, cache reads and cache writes are separate there, and add up to the input. Neither
states the number of requests; the context window shows whether prompts were long.
"""

from collections.abc import Mapping
from typing import Any

from ledger.economics.used import UsageBucket, count
from ledger.instants import InstantError, instant_us
from ledger.journals.records import TokenCounts
from ledger.prices.book import tier_of

DAY = "usage_date_utc"
COLUMNS = {DAY, "model_version", "usage_input_tokens_no_cache", "usage_output_tokens"}
LONG, LONG_TOKENS = "200k-1M", 200_001  # a context window, and its shortest prompt
DAY_US = 86_400 * 10**6
MOST_US = 400 * DAY_US


def of_row(row: Mapping[str, Any], where: str, faults: list[str]) -> UsageBucket | None:
    """Return the usage of a line of the console's table: one day, model and key."""
    start_us = _instant_us(row, DAY, where, faults)
    if start_us is None:
        return None
    named = {
        "input": "usage_input_tokens_no_cache",
        "cached": "usage_input_tokens_cache_read",
        "cache_write": "usage_input_tokens_cache_write_5m",
        "cache_write_1h": "usage_input_tokens_cache_write_1h",
        "output": "usage_output_tokens",
    }
    counts = {kind: count(row, name, where, faults) for kind, name in named.items()}
    told = {"model": row.get("model_version"), "tier": row.get("usage_type"), "context": row}
    return _make_bucket(told, (start_us, start_us + DAY_US), counts, where, faults)


def of_result(row: Mapping[str, Any], where: str, faults: list[str]) -> UsageBucket | None:
    """Return the usage of one result of the usage report, with its bucket's times."""
    span = [_instant_us(row, name, where, faults) for name in ("starting_at", "ending_at")]
    start_us, end_us = span
    if start_us is None or end_us is None:
        return None
    if not 0 < end_us - start_us <= MOST_US:
        faults.append(f"{where}: its end is not after its start")
        return None
    written = row.get("cache_creation")
    kept: Mapping[str, Any] = written if isinstance(written, dict) else {}
    counts = {
        "input": count(row, "uncached_input_tokens", where, faults),
        "cached": count(row, "cache_read_input_tokens", where, faults),
        "cache_write": count(kept, "ephemeral_5m_input_tokens", where, faults),
        "cache_write_1h": count(kept, "ephemeral_1h_input_tokens", where, faults),
        "output": count(row, "output_tokens", where, faults),
    }
    told = {"model": row.get("model"), "tier": row.get("service_tier"), "context": row}
    return _make_bucket(told, (start_us, end_us), counts, where, faults)


def _make_bucket(
    told: Mapping[str, Any],
    span: tuple[int, int],
    counts: dict[str, int],
    where: str,
    faults: list[str],
) -> UsageBucket | None:
    """Return the bucket, or `None` without usage or with a fault."""
    if not any(counts.values()):
        return None
    model = str(told["model"] or "")
    if not model:
        faults.append(f"{where}: tokens without a model: export grouped by model")
        return None
    long = told["context"].get("context_window") == LONG
    return UsageBucket(
        *span,
        model if "/" in model else f"anthropic/{model}",
        tier_of(str(told["tier"] or "")),
        0,
        TokenCounts(**counts),
        prompt=LONG_TOKENS if long else 0,
    )


def _instant_us(row: Mapping[str, Any], name: str, where: str, faults: list[str]) -> int | None:
    """Return microseconds of a date or time. A time without a zone is UTC."""
    try:
        return instant_us(str(row.get(name) or ""))
    except InstantError as error:
        faults.append(f"{where}: `{name}`: {error}")
        return None
