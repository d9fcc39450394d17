"""Anthropic's exports: both shapes say the same, and are priced by their kinds of tokens."""

import json
from datetime import UTC, datetime

import pytest

from ledger.economics.usagefile import UsageFileError, parse_usage, priced
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, PriceBook, PriceTerms, TierRates, rates_from

HEAD = (
    "usage_date_utc,model_version,api_key,workspace,usage_type,context_window,"
    "usage_input_tokens_no_cache,usage_input_tokens_cache_write_5m,"
    "usage_input_tokens_cache_write_1h,usage_input_tokens_cache_read,usage_output_tokens,"
    "web_search_count,inference_geo"
)
MODEL = "claude-haiku-4-5-20251001"
DAY_US = 86_400 * 10**6
START_US = int(datetime(2026, 11, 2, tzinfo=UTC).timestamp()) * 10**6
COUNTS = {"input": 1_000, "cached": 300, "cache_write": 50, "cache_write_1h": 20, "output": 200}


def table(*rows: str) -> bytes:
    return "\n".join([HEAD, *rows]).encode()


def row(day: str = "2026-11-02", *, kind: str = "standard", window: str = "0-200k") -> str:
    return f"{day},{MODEL},k,Default,{kind},{window},1000,50,20,300,200,0,not_available"


def result(**more: object) -> dict[str, object]:
    return {
        "uncached_input_tokens": 1_000, "cache_read_input_tokens": 300, "output_tokens": 200,
        "cache_creation": {"ephemeral_5m_input_tokens": 50, "ephemeral_1h_input_tokens": 20},
        "model": MODEL, "service_tier": "standard", "context_window": "0-200k", **more,
    }  # fmt: skip


def report(
    *results: object, start: str = "2026-11-02T00:00:00Z", end: str = "2026-11-03T00:00:00Z"
) -> bytes:
    bucket = {"starting_at": start, "ending_at": end, "results": list(results)}
    return json.dumps({"data": [bucket], "has_more": False, "next_page": None}).encode()


def book() -> PriceBook:
    base = {"input": 100, "cached": 10, "cache_write": 126, "cache_write_1h": 200, "output": 500}
    half, dear = ({kind: int(rate * by) for kind, rate in base.items()} for by in (0.5, 2))
    schedules = (
        TierRates("batch", 0, rates_from(half)), TierRates("standard", 200_000, rates_from(dear)),
    )  # fmt: skip
    terms = PriceTerms(rates_from(base), schedules)
    return PriceBook([Price(1, f"anthropic/{MODEL}", "test", 0, terms)])


def test_both_shapes_say_the_same() -> None:
    of_table, of_report = parse_usage(table(row()), "u.csv"), parse_usage(report(result()), "u")
    assert of_table.used == of_report.used
    (named,) = of_table.used
    assert (named.start_us, named.end_us) == (START_US, START_US + DAY_US)
    assert (named.name, named.tier, named.tokens) == (
        f"anthropic/{MODEL}", "standard", TokenCounts(**COUNTS),
    )  # fmt: skip
    assert [of_table.shape, of_report.shape] == ["Anthropic usage (CSV)", "Anthropic usage (JSON)"]


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("2026-11-01T00:00Z", "2026-11-02T00:00Z"),
        ("2026-11-01 01:00:00+0100", "2026-11-01T17:00:00-07:00"),
        ("2026-11-01 00:00:00.000000000 UTC", "2026-11-02"),
    ],
)
def test_the_span_is_that_of_the_instants(start: str, end: str) -> None:
    (used,) = parse_usage(report(result(), start=start, end=end), "u.json").used
    assert (used.start_us, used.end_us) == (1_793_491_200_000_000, 1_793_577_600_000_000)


PUSD = 1_000 * 100 + 300 * 10 + 50 * 126 + 20 * 200 + 200 * 500


@pytest.mark.parametrize(
    ("kind", "window", "times"),
    [("standard", "0-200k", 1), ("batch", "0-200k", 0.5), ("standard", "200k-1M", 2)],
)
def test_each_kind_of_token_has_its_price(kind: str, window: str, times: float) -> None:
    """A bucket adds up many requests: only the window says that prompts were long."""
    many = [row(kind=kind, window=window)] * 900
    cost = priced(parse_usage(table(*many), "u.csv"), book())
    assert cost.pusd == {f"anthropic/{MODEL}": 900 * PUSD * times}
    assert cost.other_tier == ()


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (report(result(model=None)), "bucket 1: tokens without a model: export grouped by model"),
        (report(result(), end="2026-11-01T00:00:00Z"), "its end is not after its start"),
        (report(7), "bucket 1: a result is not an object"),
        (report(result(cache_creation=7, output_tokens=-1)), "`-1` is not a count"),
        (report(result(), end="9999-12-31T23:59:59-12:00"), "outside of the years"),
        (table(row(day="Monday")), "line 2: `usage_date_utc`: 'Monday' is not a date"),
        (table(row()).replace(b"usage_output_tokens", b"x"), "no column `usage_output_tokens`"),
        (report(), "the file has no row with tokens"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_told(data: bytes, told: str) -> None:
    with pytest.raises(UsageFileError) as error:
        parse_usage(data, "u.csv")
    assert told in str(error.value)
