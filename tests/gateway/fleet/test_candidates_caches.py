"""A coding session at two APIs with prompt caches: dollars as they will be billed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gateway.clock import Clock
from gateway.fleet.candidates import CandidateBuilder, PromptCaches
from gateway.fleet.fleet import Target
from gateway.fleet.prefix_index import beginning_of
from gateway.fleet.provider_caches import CacheForecast, ProviderCaches
from gateway.fleet.shared_load import SharedLoadTable
from gateway.kinds import KIND_PATHS
from gateway.kinds.inference_request import IncomingBody, InferenceRequest
from gateway.table_layout import TableLayout
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, PriceBook, PriceTerms, cost_pusd, rates_from
from ledger.prices.prompt_caches import cache_rule_of
from router.cached_share import CachedShare
from router.decide import decide
from router.request_kinds import RequestKind
from router.types import OutputMoments, Policy, RoutingRequest

WARM, CHEAP = "openai/gpt-5", "openai/gpt-5-cheap"
OUTPUT = 500
PAUSE_S = 60.0


class MockCache:
    """A provider by OpenAI's rules, exact: bytes / 4 are its tokens."""

    def __init__(self, name: str) -> None:
        self.rule, self._kept = cache_rule_of(name), (b"", 0.0)

    def bill(self, prompt: bytes, now_s: float) -> TokenCounts:
        text, read_s = self._kept
        same = len_common(prompt, text) if now_s - read_s <= self.rule.ttl_s else 0
        self._kept = prompt, now_s
        cached = self.rule.readable(same // 4)
        return TokenCounts(input=len(prompt) // 4 - cached, cached=cached, output=OUTPUT)


def api_target(name: str, row: int) -> Target:
    backend: Any = None  # freezing never calls it
    return Target(name, False, None, "openai", name, False, backend, row,
                  frozenset(), frozenset(RequestKind), None, True)  # fmt: skip


def chat_asked(messages) -> InferenceRequest:
    text = json.dumps({"model": "m", "messages": messages}).encode()
    return KIND_PATHS["/v1/chat/completions"].read(
        IncomingBody(text, "application/json", None, max_n=8)
    )


def len_common(one: bytes, other: bytes) -> int:
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


class Session:
    """One conversation through the builder, learning as the gateway does."""

    def __init__(self, forecast: CacheForecast, builder: CandidateBuilder, book) -> None:
        self.forecast, self.builder, self.book, self.now_s = forecast, builder, book, 0.0
        self.messages = [{"role": "system", "content": "You write code. " * 3_000}]
        self.providers = {name: MockCache(name) for name in (WARM, CHEAP)}

    def turn(self, *, keep_to: str | None = None) -> tuple[str, int, int]:
        """(where it went, expected, billed), in pico-USD."""
        self.messages.append({"role": "user", "content": f"Turn {len(self.messages)}. " * 60})
        body = chat_asked(self.messages)
        tokens = body.prompt_bytes // 4
        request = RoutingRequest(
            RequestKind.CHAT, "chat", tokens, tokens + 64, OUTPUT,
            OutputMoments(9, float(OUTPUT), OUTPUT**2, float(OUTPUT)),
            beginning=beginning_of(body, None),
        )  # fmt: skip
        clock = Clock(now_s=lambda: self.now_s, wall_us=lambda: 10**15)
        frozen = self.builder.build(
            [api_target(name, row) for row, name in enumerate((WARM, CHEAP))],
            request, [], rooms_pusd=[None, None], ceiling_pusd=None, clock=clock,
        )  # fmt: skip
        decision = decide(request, Policy("p"), [item.candidate for item in frozen])
        name = keep_to or decision.order[0].candidate.name
        chosen = next(item for item in frozen if item.target.name == name)
        told = json.dumps(self.messages).encode()[:-1]
        used = self.providers[name].bill(told, self.now_s)
        if chosen.prefix_tokens:
            self.forecast.shares.observe(name, chosen.prefix_tokens, used.cached, self.now_s)
        prefix = request.beginning
        self.forecast.caches.record_read(name, prefix, cache_rule_of(name), self.now_s)
        self.messages.append({"role": "assistant", "content": "x = 1\n" * 300})
        self.now_s += PAUSE_S
        return name, chosen.candidate.expected_pusd or 0, cost_pusd(used, self.book[name])


def price(name: str, scale: float) -> Price:
    listed = {"input": round(1_250_000 * scale), "cached": round(125_000 * scale),
              "output": round(10_000_000 * scale)}  # fmt: skip
    return Price(1, name, "book", 0, PriceTerms(rates_from(listed)))


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    board = SharedLoadTable(tmp_path / "board", TableLayout(1, (), (WARM, CHEAP)))
    book = {WARM: price(WARM, 1.0), CHEAP: price(CHEAP, 0.8)}
    forecast = CacheForecast(ProviderCaches(tmp_path / "caches"), CachedShare())
    builder = CandidateBuilder(
        board, PriceBook(list(book.values())), stale_s=10.0, caches=PromptCaches(None, forecast)
    )
    yield Session(forecast, builder, book)
    forecast.caches.close()
    board.close()


def test_a_warm_session_is_rated_as_it_is_billed_and_stays(session) -> None:
    first = session.turn(keep_to=WARM)
    assert first[1] == pytest.approx(first[2], rel=0.02), "cold at both: nothing is counted on"
    session.turn(keep_to=WARM)
    later = [session.turn() for _ in range(20)]
    assert {name for name, *_ in later} == {WARM}, "20 % cheaper by its list, and cold"
    expected, billed = (sum(turn[place] for turn in later[2:]) for place in (1, 2))
    assert expected == pytest.approx(billed, rel=0.05)
    ratios = [expected / billed for _, expected, billed in later[2:]]
    assert ratios == pytest.approx([1.0] * 18, rel=0.12), "a beginning is known to its last mark"


def test_it_moves_once_the_cache_has_forgotten_it(session) -> None:
    for _ in range(3):
        session.turn(keep_to=WARM)
    session.now_s += 600.0
    name, expected, billed = session.turn()
    assert (name, expected) == (CHEAP, pytest.approx(billed, rel=0.02))


def test_without_a_forecast_it_would_move_at_once(session) -> None:
    """The control: by their lists alone the second is always the cheaper."""
    session.builder = CandidateBuilder(
        session.builder._sights, PriceBook(list(session.book.values())), stale_s=10.0
    )  # fmt: skip
    session.turn(keep_to=WARM)
    assert session.turn()[0] == CHEAP


def test_what_leaving_gives_up_is_told(session) -> None:
    for _ in range(3):
        session.turn(keep_to=WARM)
    body = chat_asked(session.messages)
    tokens = body.prompt_bytes // 4
    request = RoutingRequest(RequestKind.CHAT, "chat", tokens, tokens, 10,
                             OutputMoments(9, 10.0, 100.0, 10.0),
                             beginning=beginning_of(body, None))  # fmt: skip
    clock = Clock(now_s=lambda: session.now_s, wall_us=lambda: 10**15)
    warm, cheap = (
        item.candidate
        for item in session.builder.build(
            [api_target(WARM, 0), api_target(CHEAP, 1)], request, [],
            rooms_pusd=[None, None], ceiling_pusd=None, clock=clock,
        )
    )  # fmt: skip
    assert warm.cached_tokens > 0.7 * tokens
    assert warm.cache_saves_pusd == warm.cached_tokens * (1_250_000 - 125_000)
    assert (cheap.cached_tokens, cheap.cache_saves_pusd) == (0, 0)
