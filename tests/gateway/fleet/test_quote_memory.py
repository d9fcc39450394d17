"""Quotes are looked up once while no price changes, whoever asks; so many and no more."""

from typing import Any

from gateway.clock import Clock
from gateway.fleet import quote_memory
from gateway.fleet.candidates import CandidateBuilder
from gateway.fleet.quote_memory import QuoteMemory
from ledger.journals.records import TokenCounts
from ledger.prices.book import Price, PriceBook, PriceTerms, rates_from
from ledger.prices.rates import TierRates
from router.request_kinds import RequestKind
from router.types import OutputMoments, RoutingRequest

AT_US = 10**15
PRICE = Price(1, "x/m", "test", 0, PriceTerms(rates_from({"input": 1, "output": 2})))


def test_prices_of_so_many_names_are_remembered_and_no_more(monkeypatch) -> None:
    """A client names models as it likes; one that is not remembered is looked up again."""
    monkeypatch.setattr(quote_memory, "PRICED_LIMIT", 2)
    memory = QuoteMemory(PriceBook([PRICE]), {})
    for names in (["x/m"], ["a"], ["b"], ["x/m", "c"], ["x/m"]):
        found = memory.quotes_at(names, AT_US)
        assert [quote.price.name for quote in found] == ["x/m"] * ("x/m" in names)
    assert (set(memory._compared), set(memory._quoted)) == (
        {("x/m",), ("a",)},
        {("x/m", ""), ("a", "")},
    )
    memory.reprice(PriceBook([]))
    assert memory.quotes_at(["x/m"], AT_US) == ()


def test_a_clients_word_for_a_tier_is_not_remembered() -> None:
    """Red before: 4,096 words, and no price was remembered until the next reload."""
    tiers = tuple(
        TierRates(name, 0, rates_from({"input": 3, "output": 3})) for name in ("batch", "flex")
    )
    terms = PriceTerms(rates_from({"input": 1, "output": 2}), schedules=tiers)
    memory = QuoteMemory(PriceBook([Price(1, "x/m", "test", 0, terms)]), {})
    memory.quotes_at([], AT_US)
    one = TokenCounts(input=1)
    found = {tier: memory.quote("x/m", tier) for tier in ("flex", "batch", "a", "b", "standard")}
    costs = {tier: quote and quote.cost_pusd(one) for tier, quote in found.items()}
    assert costs == {"flex": 3, "batch": 1, "a": 1, "b": 1, "standard": 1}
    assert memory.quote("y/m", "flex") is None
    assert set(memory._quoted) <= {
        ("x/m", ""), ("x/m", "flex"), ("x/m", "standard"), ("y/m", "")
    }  # fmt: skip


def test_requests_with_pictures_share_what_was_looked_up(monkeypatch) -> None:
    """Red before: each of them looked every price up again."""
    book, asked = PriceBook([PRICE]), []
    find = PriceBook.find
    monkeypatch.setattr(PriceBook, "find", lambda *given: (asked.append(given), find(*given))[1])
    board: Any = None
    builder = CandidateBuilder(board, book, stale_s=10.0)
    media: Any = object()  # only kept until a prompt is measured
    clock = Clock(now_s=lambda: 0.0, wall_us=lambda: AT_US)
    asked_for = RoutingRequest(RequestKind.CHAT, "m", 9, 9, 9, OutputMoments(1, 9.0, 81, 9.0))
    for each_media in (media, None, media):
        found = builder.with_media(each_media).comparators(["x/m"], asked_for, clock)
        assert len(found) == 1
    assert len(asked) == 1
