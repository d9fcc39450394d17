"""Charges add up to the attempts, kind by kind; what does not follow from a price is said."""

from collections import Counter
from fractions import Fraction

import msgspec
import pytest
from sqlalchemy import text

from ledger.database import snapshot
from ledger.journals.records import TokenCounts
from ledger.orm.tables import AttemptRow
from ledger.prices.rates import Price, PriceTerms, TierRates, cost_pusd, rates_from
from ledger.prices.stored import every_price
from ledger.reports.charges import (
    UNEXPLAINED,
    UNSETTLED,
    PriceGroup,
    charges,
    column_conditions,
    cuts_of,
    groups,
    unpriced,
)
from ledger.spans import DAY_US, Scope
from ledger.writing.repository import LedgerRepository

RATES = rates_from({"input": 20, "output": 40, "cached": 3, "reasoning": 50})
PLAIN = Price(1, "openai/gpt", "litellm", 0, PriceTerms(RATES))
TOKENS = TokenCounts(input=10, cached=2, output=5, reasoning=1)
COST = 10 * 20 + 2 * 3 + 4 * 40 + 1 * 50


def group(cost: int = COST, tokens: TokenCounts = TOKENS, **changes: object) -> PriceGroup:
    fields = {
        "start_us": 0, "key": (), "version": 1, "tier": "standard", "prompt_tokens": 12,
        "first_us": 0, "lost": False, "requests": 2, "tokens": tokens, "cost_pusd": cost,
    }  # fmt: skip
    return PriceGroup(**{**fields, **changes})


def test_each_kind_has_its_price_and_they_add_up() -> None:
    found = charges(group(), PLAIN, PLAIN)
    assert [(finding.kind, finding.quantity, finding.cost_pusd) for finding in found] == [
        ("input", 10, 200), ("cached", 2, 6), ("output", 4, 160), ("reasoning", 1, 50),
    ]  # fmt: skip
    assert all(
        finding.unit_pusd * finding.quantity == finding.cost_pusd == finding.list_pusd
        for finding in found
    )


def test_a_negotiated_price_is_beside_the_public_one() -> None:
    public = Price(
        2, "openai/gpt", "litellm", 0, PriceTerms(rates_from({"input": 30, "output": 60}))
    )
    found = charges(group(), PLAIN, public)
    assert [(finding.kind, finding.cost_pusd, finding.list_pusd) for finding in found] == [
        ("input", 200, 300), ("cached", 6, 60), ("output", 160, 240), ("reasoning", 50, 60),
    ]  # fmt: skip


def test_a_surcharge_that_was_rounded_per_attempt_is_shared_exactly() -> None:
    """Two attempts of 3 + 3 input tokens at 0.5 + 10 %: each rounded, so their sum is not it."""
    price = Price(
        1, "x/y", "b", 0, PriceTerms(rates_from({"input": 5, "output": 7}), uplift_ppm=100_000)
    )
    tokens = TokenCounts(input=3, output=3)
    found = charges(group(39, tokens), price, price)  # 36 x 1.1 = 39.6: 39 is within a unit
    assert sum(finding.cost_pusd for finding in found) == 39
    assert found[0].unit_pusd == Fraction(55, 10)
    (whole,) = charges(group(38, tokens), price, price)  # 1.6 away: not rounding
    assert (whole.kind, whole.cost_pusd) == (UNEXPLAINED, 38)


def test_a_fee_and_a_tier_are_in_it() -> None:
    terms = PriceTerms(
        RATES,
        (TierRates("flex", 0, rates_from({"input": 1, "output": 2})),
         TierRates("standard", 11, rates_from({"input": 100, "output": 100}))),
        request_pusd=1000,
    )  # fmt: skip
    price = Price(1, "x/y", "b", 0, terms)
    flex = charges(group(12 + 10 + 2000, tier="flex"), price, price)
    assert [item.kind for item in flex] == ["input", "cached", "output", "reasoning", "requests"]
    assert (flex[-1].quantity, flex[-1].cost_pusd) == (2, 2000)
    unlisted = charges(group(1700 + 2000, tier="priority"), price, price)
    assert unlisted[0].unit_pusd == 100, "long prompts pay the higher standard rates"
    assert cuts_of({1: price}) == [11]


def test_what_does_not_follow_stays_whole() -> None:
    for cost, price, kind in (
        (group(lost=True), PLAIN, UNSETTLED),
        (group(), None, UNEXPLAINED),
        (group(COST + 1), PLAIN, UNEXPLAINED),
        (group(COST, TokenCounts(input=10, output=5, reasoning=6)), PLAIN, UNEXPLAINED),
    ):
        (whole,) = charges(cost, price, price)
        assert (whole.kind, whole.quantity, whole.cost_pusd) == (kind, 2, cost.cost_pusd)
    assert charges(group(0, TokenCounts()), PLAIN, PLAIN) == []
    assert charges(group(0, lost=True), PLAIN, PLAIN) == []


def by_kind(ledger, by: list) -> tuple[Counter, int]:
    found, total = Counter(), 0
    with snapshot(ledger.reader) as connection:
        prices = {price.version: price for price in every_price(connection)}
        scope = Scope(ledger.START_US, ledger.end_us)
        for group in groups(connection, scope, bucket_us=DAY_US, by=by, cuts=cuts_of(prices)):
            for charge in charges(group, prices[group.version], None):
                found[group.start_us, *group.key, charge.kind] += charge.cost_pusd
                total += charge.cost_pusd
    return found, total


def test_a_random_ledger_agrees_with_what_was_counted_beside_it(random_ledger) -> None:
    found, total = by_kind(random_ledger, [AttemptRow.team_id, AttemptRow.target])
    assert total == random_ledger.total
    assert found.keys() == random_ledger.costs.keys()
    for place, millionths in random_ledger.costs.items():
        away = abs(found[place] * 10**6 - millionths)
        exact = "surcharged" not in place[2]
        assert away == 0 if exact else away < random_ledger.attempts * 10**6, place


def test_the_dimensions_change_no_sum(random_ledger) -> None:
    assert by_kind(random_ledger, [])[1] == random_ledger.total


def test_unpriced_ones_are_counted(random_ledger) -> None:
    with snapshot(random_ledger.reader) as connection:
        everything = Scope(random_ledger.START_US, random_ledger.end_us)
        assert unpriced(connection, everything) == random_ledger.written["unpriced"]
    assert column_conditions({AttemptRow.team_id: ()}) == []


@pytest.mark.parametrize("change", ["cost_pusd = cost_pusd + 1", "input_tokens = input_tokens + 1"])
def test_a_tampered_attempt_is_seen(engine, opened, settled, change: str) -> None:
    """Negative control: a pico-dollar too much, or a token, is no longer the price's charge."""
    records = [opened(), settled(cost_pusd=10 * 20 + 2 * 3 + 5 * 40)]
    LedgerRepository(engine, host="h").import_records(records, journal="j", at_us=1)

    def kinds() -> list[str]:
        with engine.connect() as connection:
            (item,) = groups(connection, Scope(0, 2**60), bucket_us=DAY_US, by=[], cuts=[])
        return [charge.kind for charge in charges(item, PLAIN, None)]

    assert kinds() == ["input", "cached", "output"]
    with engine.begin() as connection:
        connection.execute(text(f"UPDATE attempts SET {change}"))
    assert kinds() == [UNEXPLAINED]


SOUND = PriceTerms(rates_from({"input": 0, "output": 0}), second_pusd=100_001)
BOTH = PriceTerms(rates_from({"input": 2, "output": 8, "audio_input": 3}), second_pusd=1000)
SEARCHED = PriceTerms(rates_from({"input": 0, "output": 0}), search_pusd=2000)


@pytest.mark.parametrize(
    ("terms", "tokens", "items"),
    [
        (SEARCHED, TokenCounts(searches=3), [("searches", 3, 6000)]),
        (SOUND, TokenCounts(audio_ms=2500), [("seconds", Fraction(5, 2), 250_002)]),
        (BOTH, TokenCounts(audio_ms=2500), [("seconds", Fraction(5, 2), 2500)]),
        (BOTH, TokenCounts(audio_input=25, output=4, audio_ms=2500),
         [("output", 4, 32), ("audio_input", 25, 75)]),
    ],
)  # fmt: skip
def test_searches_and_sound_are_kinds_of_their_own(terms, tokens, items) -> None:
    price = Price(1, "x/y", "b", 0, terms)
    booked = cost_pusd(tokens, price)
    found = charges(group(booked, tokens, requests=1), price, price)
    assert [(finding.kind, finding.quantity, finding.cost_pusd) for finding in found] == items
    (whole,) = charges(group(booked + 2, tokens, requests=1), price, price)
    assert whole.kind == UNEXPLAINED


def test_sound_that_was_counted_in_tokens_is_apart(engine, opened, settled) -> None:
    """One price lists both: added up, seconds of the one would be charged with the other."""
    price, used = Price(1, "x/y", "b", 0, BOTH), []
    for number, tokens in enumerate(
        (TokenCounts(audio_ms=2500), TokenCounts(audio_input=25, audio_ms=9000))
    ):
        name, cost = f"a{number}", cost_pusd(tokens, price)
        used += [opened(attempt_id=name), settled(attempt_id=name, tokens=tokens, cost_pusd=cost)]
    LedgerRepository(engine, host="h").import_records(used, journal="j", at_us=1)
    with engine.connect() as connection:
        found = list(groups(connection, Scope(0, 2**60), bucket_us=DAY_US, by=[], cuts=[]))
    kinds = sorted(
        (charge.kind, charge.cost_pusd) for each in found for charge in charges(each, price, None)
    )
    assert kinds == [("audio_input", 75), ("seconds", 2500)]


def test_what_failed_before_it_was_worked_on_pays_no_fee(engine, opened, settled) -> None:
    price, tokens = Price(1, "x/y", "b", 0, SEARCHED), TokenCounts(searches=3)
    price = msgspec.structs.replace(
        price, terms=msgspec.structs.replace(price.terms, request_pusd=500)
    )
    used = [
        opened(attempt_id="a"), settled(attempt_id="a", tokens=tokens, cost_pusd=6500),
        opened(attempt_id="b"),
        settled(attempt_id="b", status="rejected", tokens=TokenCounts(), cost_pusd=0),
    ]  # fmt: skip
    LedgerRepository(engine, host="h").import_records(used, journal="j", at_us=1)
    with engine.connect() as connection:
        (found,) = groups(connection, Scope(0, 2**60), bucket_us=DAY_US, by=[], cuts=[])
    kinds = [
        (charge.kind, charge.quantity, charge.cost_pusd) for charge in charges(found, price, None)
    ]
    assert kinds == [("searches", 3, 6000), ("requests", 1, 500)]
