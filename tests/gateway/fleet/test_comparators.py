"""What comparators would charge for a session that own engines serve: as a real session's bill."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.fleet.comparators import (
    Comparator,
    avoided_pusd,
    comparators_of,
    compared_cost_pusd,
    record_elsewhere,
)
from gateway.fleet.prefix_index import ENDS
from gateway.fleet.provider_caches import CachedPrompt, CacheForecast, ProviderCaches
from ledger.journals.records import TokenCounts
from ledger.prices.quotes import PriceQuote
from ledger.prices.rates import Price, PriceTerms, rates_from
from router.cached_share import CachedShare
from router.prompts import PromptPrefix
from router.request_kinds import RequestKind
from router.types import OutputMoments, RoutingRequest

OUTPUT = 200
OPENAI, CLAUDE = "openai/gpt-5", "anthropic/claude-sonnet-4"
NUMBERS = count()


@pytest.fixture
def forecast(tmp_path: Path) -> Iterator[CacheForecast]:
    made = CacheForecast(ProviderCaches(tmp_path / "caches"), CachedShare())
    yield made
    made.caches.close()


def quote(name: str, **rates: int) -> PriceQuote:
    listed = rates_from({"input": 100, "output": 400, "cached": 10, **rates})
    return PriceQuote(Price(1, name, "book", 0, PriceTerms(listed)))


def turn(pieces: int, *, kept_s: int = 0, first: int = 1000) -> RoutingRequest:
    """A session's prompt of so many pieces; every one begins with all of the one before."""
    marks = tuple(range(first, first + pieces))
    prefix = PromptPrefix(marks, 0, ENDS[pieces - 1] if pieces else 1, kept_s)
    tokens = ENDS[pieces - 1] // 4 if pieces else 1
    return RoutingRequest(
        RequestKind.CHAT, "m", tokens, tokens, OUTPUT,
        OutputMoments(9, float(OUTPUT), OUTPUT**2, float(OUTPUT)), beginning=prefix,
    )  # fmt: skip


def used(request: RoutingRequest) -> TokenCounts:
    return TokenCounts(input=request.prompt_tokens, output=OUTPUT)


def play(forecast: CacheForecast, at: PriceQuote, pieces: list[int], *, kept_s: int = 0):
    """(expected at the decision, booked at the end) of each turn, on own engines alone."""
    found = []
    for number, size in enumerate(pieces):
        request, now_s = turn(size, kept_s=kept_s), 30.0 * number
        (compared,) = comparators_of([at], request, forecast, now_s)
        decided = avoided_pusd([at], request, used(request), forecast, now_s)
        found.append((decided, *compared_cost_pusd(used(request), compared)))
        record_elsewhere([compared], request, forecast, now_s)
    return found


def test_a_warm_session_on_own_engines_avoids_what_its_turns_would_have_cost(forecast) -> None:
    """Red before: each turn was taken to avoid the price of its whole prompt anew."""
    at = quote(OPENAI)
    forecast.shares.observe(OPENAI, 100_000, 100_000, 0.0)
    sizes = [80, 82, 84, 86]
    found = play(forecast, at, sizes)
    before = 0
    for size, (decided, booked, cached) in zip(sizes, found, strict=True):
        request = turn(size)
        share = forecast.shares.share(OPENAI, promised=False)
        readable = ENDS[before - 1] // 4 // 128 * 128 if before else 0
        assert cached == int(share * readable)
        plain = request.prompt_tokens - cached
        assert decided == booked == 100 * plain + 10 * cached + 400 * OUTPUT
        before = size
    whole = 100 * turn(86).prompt_tokens + 400 * OUTPUT
    assert found[-1][1] < 0.4 * whole


def test_unknown_is_nothing(forecast) -> None:
    """Nobody saw what this provider charges as cached; a control of the test above."""
    for decided, booked, cached in play(forecast, quote(OPENAI), [80, 82]):
        assert cached == 0
        assert decided == booked
    assert booked == 100 * turn(82).prompt_tokens + 400 * OUTPUT


def test_what_is_promised_needs_no_evidence_and_writing_is_charged(forecast) -> None:
    at = quote(CLAUDE, cache_write=125, cache_write_1h=200)
    (first, second) = play(forecast, at, [80, 82], kept_s=300)
    tokens = turn(80).prompt_tokens
    assert first == (125 * tokens + 400 * OUTPUT, 125 * tokens + 400 * OUTPUT, 0)
    decided, booked, cached = second
    written = turn(82).prompt_tokens - cached
    assert cached == tokens
    assert decided == booked == 125 * written + 10 * cached + 400 * OUTPUT


def test_it_is_forgotten_when_the_providers_time_is_over(forecast) -> None:
    at = quote(OPENAI)
    forecast.shares.observe(OPENAI, 1000, 1000, 0.0)
    record_elsewhere([Comparator(at.price)], turn(80), forecast, 0.0)
    for now_s, warm in ((300.0, True), (302.0, False)):
        (compared,) = comparators_of([at], turn(82), forecast, now_s)
        assert (compared.hit.expected > 0) is warm


def test_what_would_be_there_is_not_taken_to_be_there(forecast) -> None:
    """A session that own engines serve is cold at the API itself, whatever it avoids there."""
    at = quote(OPENAI)
    forecast.shares.observe(OPENAI, 1000, 1000, 0.0)
    record_elsewhere([Comparator(at.price)], turn(80), forecast, 0.0)
    assert forecast.prompt_at(OPENAI, at, turn(82), 1.0).expected == 0


def test_the_cheapest_counts_with_its_cache(forecast) -> None:
    """The dearer one by its list is the cheaper one of a warm session."""
    warm, cold = quote(OPENAI), quote("other/m", input=60, output=300, cached=60)
    request = turn(82)
    assert avoided_pusd([warm, cold], request, used(request), None, 0.0) == cold.cost_pusd(
        used(request)
    )
    forecast.shares.observe(OPENAI, 1000, 1000, 0.0)
    record_elsewhere([Comparator(warm.price)], turn(80), forecast, 0.0)
    both = avoided_pusd([warm, cold], request, used(request), forecast, 1.0)
    assert both == avoided_pusd([warm], request, used(request), forecast, 1.0)
    assert both < cold.cost_pusd(used(request))
    assert avoided_pusd([], request, used(request), forecast, 1.0) == 0


@given(st.integers(0, 10_000), st.integers(0, 10_000), st.integers(0, 10_000), st.integers(0, 500))
def test_every_token_of_the_prompt_is_charged_once(fresh, read, expected, written) -> None:
    tokens = TokenCounts(input=fresh, cached=read, output=7, reasoning=3)
    hit = CachedPrompt(expected, expected, written)
    for hour in (False, True):
        split = Comparator(quote(OPENAI).price, hit, 5_000, hour).split_prompt(tokens)
        assert split.prompt == tokens.prompt
        assert min(split.input, split.cached, split.cache_write, split.cache_write_1h) >= 0
        assert (split.output, split.reasoning) == (7, 3)
