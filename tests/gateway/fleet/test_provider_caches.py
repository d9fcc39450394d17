"""What a provider may have of a prompt: what was sent there of it, of late, and nothing else."""

from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gateway.fleet.prefix_index import ENDS, HOUR_S
from gateway.fleet.provider_caches import CachedPrompt, CacheForecast, ProviderCaches
from ledger.journals.records import TokenCounts
from ledger.prices.prompt_caches import PromptCacheRule
from ledger.prices.quotes import PriceQuote
from ledger.prices.rates import Price, PriceTerms, rates_from
from router.cached_share import CachedShare
from router.prompts import PromptPrefix
from router.request_kinds import RequestKind
from router.types import OutputMoments, RoutingRequest

RULE = PromptCacheRule()
CLAUDE = PromptCacheRule(marked=True, promised=True)
A = "openai/gpt-5"
NUMBERS = count()
words = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=40, unique=True)


@pytest.fixture(scope="module")
def caches(tmp_path_factory) -> Iterator[ProviderCaches]:
    made = ProviderCaches(tmp_path_factory.mktemp("run") / "provider-caches")
    yield made
    made.close()


def prefix(marks, **changes) -> PromptPrefix:
    return PromptPrefix(tuple(marks), 0, ENDS[len(marks) - 1] if marks else 1, **changes)


@settings(max_examples=60, deadline=None)
@given(words, st.integers(1, 40), st.integers(0, 2**33))
def test_the_longest_beginning_that_was_sent_is_known_until_its_time_is_over(
    caches, marks, sent, now_s
) -> None:
    target = f"p/{next(NUMBERS)}"
    caches.record_read(target, prefix(marks[:sent]), RULE, now_s)
    known = min(sent, len(marks))
    assert caches.count_known(target, prefix(marks), now_s) == known
    assert caches.count_known(target, prefix(marks), now_s + RULE.ttl_s) == known
    assert caches.count_known(target, prefix(marks), now_s + RULE.ttl_s + 1) == 0
    assert caches.count_known("elsewhere/m", prefix(marks), now_s) == 0
    others = [mark for mark in range(50) if mark not in marks]
    assert caches.count_known(target, prefix(others), now_s) == 0


def test_reading_it_again_renews_its_time(caches) -> None:
    marks = range(100, 130)
    caches.record_read(A, prefix(marks), RULE, 0)
    caches.record_read(A, prefix(marks[:10]), RULE, 200)
    assert caches.count_known(A, prefix(marks), 400) == 10


def test_what_a_provider_keeps_by_marks_alone_is_kept_for_the_time_that_they_ask(caches) -> None:
    marks = range(200, 230)
    caches.record_read(A, prefix(marks), CLAUDE, 0)
    assert caches.count_known(A, prefix(marks), 0) == 0
    caches.record_read(A, prefix(marks, kept_s=HOUR_S), CLAUDE, 0)
    assert caches.count_known(A, prefix(marks), HOUR_S) == 30


def test_marks_say_nothing_to_a_provider_that_goes_by_none(caches) -> None:
    """Red before: a mark for an hour made a provider of five minutes keep it for an hour, too."""
    marks = range(500, 530)
    caches.record_read(A, prefix(marks, kept_s=HOUR_S), RULE, 0)
    assert caches.count_known(A, prefix(marks), RULE.ttl_s) == 30
    assert caches.count_known(A, prefix(marks), RULE.ttl_s + 1) == 0


def quote(name: str, **rates: int) -> PriceQuote:
    listed = rates_from({"input": 10, "output": 40, "cached": 1, **rates})
    return PriceQuote(Price(1, name, "book", 0, PriceTerms(listed)))


def asked(marks, tokens: int, **changes) -> RoutingRequest:
    moments = OutputMoments(1, 10.0, 100.0, 20.0)
    return RoutingRequest(RequestKind.CHAT, "m", tokens, tokens + 64, 100, moments,
                          beginning=prefix(marks, **changes))  # fmt: skip


def test_a_forecast_is_the_learned_share_in_steps(caches) -> None:
    forecast, marks = CacheForecast(caches, CachedShare()), range(300, 360)
    price, request = quote(A), asked(range(300, 360), 10_000)
    assert forecast.prompt_at(A, price, request, 0.0) == (0, 0, 0)
    caches.record_read(A, prefix(marks), RULE, 0)
    assert forecast.prompt_at(A, price, request, 1.0) == (9984, 0, 0), "not seen: not counted on"
    for _ in range(20):
        forecast.shares.observe(A, 1000, 1000, 0.0)
    readable, expected, written = forecast.prompt_at(A, price, request, 1.0)
    assert (readable, written) == (9984, 0)
    assert 0.95 * 9984 < expected < 9984
    assert forecast.prompt_at(A, price, request, 400.0) == (0, 0, 0)
    assert forecast.prompt_at(A, quote(A, cached=10), request, 1.0) == (0, 0, 0)
    assert forecast.prompt_at(A, price, asked(marks, 1000), 1.0) == (0, 0, 0), "too short"


def test_claude_reads_and_writes_what_is_marked(caches) -> None:
    name = "anthropic/claude-sonnet-4-5"
    forecast, price = CacheForecast(caches, CachedShare()), quote(name, cache_write=12)
    marks = range(400, 460)
    bare, marked = asked(marks, 8000), asked(marks, 8000, kept_s=300)
    assert forecast.prompt_at(name, price, bare, 0.0) == (0, 0, 0)
    assert forecast.prompt_at(name, price, marked, 0.0) == (0, 0, 8000)
    caches.record_read(name, prefix(marks[:50], kept_s=300), CLAUDE, 0)
    readable, expected, written = forecast.prompt_at(name, price, marked, 10.0)
    assert 0 < readable == expected < 8000
    assert written == 8000 - expected


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.booleans())
def test_no_token_is_lost_or_made(plain, expected, written, hour) -> None:
    forecast = TokenCounts(input=plain + expected + written, output=7)
    split = CachedPrompt(expected, expected, written).split(forecast, for_an_hour=hour)
    assert (split.prompt, split.output) == (forecast.input, 7)
    assert (split.input, split.cached) == (plain, expected)
    assert (split.cache_write_1h if hour else split.cache_write) == written
