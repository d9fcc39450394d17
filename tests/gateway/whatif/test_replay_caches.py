"""Providers' caches in virtual time: sessions are billed as they would be."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.fleet.prefix_index import ENDS
from gateway.whatif.replay_caches import BYTES_PER_TOKEN, CachedBills, beginning_of_arrival
from gateway.whatif.replay_fleet import ReplayFleet
from gateway.whatif.traffic import PREFIX_TOKENS, Arrival
from gateway.whatif.whatif_run import run_whatif
from ledger.money import PUSD_PER_USD
from ledger.prices.book import PriceBook, PriceTerms
from ledger.prices.rates import rates_from

parts = st.lists(st.integers(0, 5), min_size=1, max_size=40)


@given(parts, parts)
def test_equal_beginnings_have_equal_marks_and_others_none(first, second) -> None:
    """A mark is shared just where all parts up to its end are."""
    one, other = (
        beginning_of_arrival(Arrival(0.0, PREFIX_TOKENS * len(ids), 1, "m", prefix=tuple(ids)))
        for ids in (first, second)
    )
    shared = 0
    while shared < min(len(first), len(second)) and first[shared] == second[shared]:
        shared += 1
    known = sum(end <= shared * PREFIX_TOKENS * BYTES_PER_TOKEN for end in ENDS)
    assert one.marks[:known] == other.marks[:known]
    assert not set(one.marks[known:]) & set(other.marks[known:])


def test_a_prompt_that_nobody_tells_of_has_no_beginning() -> None:
    assert beginning_of_arrival(Arrival(0.0, 9_000, 1, "m")).marks == ()
    told = Arrival(0.0, 9_000, 1, "m", session="s", tenant="t")
    again = beginning_of_arrival(told._replace(prompt_tokens=12_000))
    assert again.marks[: len(beginning_of_arrival(told).marks)] == beginning_of_arrival(told).marks
    assert beginning_of_arrival(told._replace(session="r")).marks[0] != again.marks[0]


@pytest.fixture(scope="module")
def cached(house) -> ReplayFleet:
    """The same house, whose API charges a tenth for what it has cached."""
    (price,) = house.prices.prices_in_force(0)
    rates = rates_from({"input": 150_000, "output": 600_000, "cached": 15_000})
    book = PriceBook([replace(price, terms=PriceTerms(rates))])
    return ReplayFleet(house.settings, book, house.engines, {}, 10**15)


def session(pause_s: float = 30.0, count: int = 12, **changes) -> list[Arrival]:
    """Prompts that no own engine holds, of one session; each goes on from the one before."""
    return [
        Arrival(pause_s * turn, 140_000 + 1_000 * turn, 50, "chat", session="s", **changes)
        for turn in range(count)
    ]


def play(house: ReplayFleet, under, arrivals: list[Arrival]) -> dict:
    sets = [("set", under("loose"))]
    return run_whatif(house, sets, arrivals, 1, lambda *_: None)["results"][0]


def test_a_warm_session_is_billed_as_its_provider_does(cached, under) -> None:
    arrivals = session()
    found = play(cached, under, arrivals)
    bills = CachedBills()
    (price,) = cached.prices.prices_in_force(0)
    exact, before = 0, 0
    for arrival in arrivals:
        ((_, hit),) = bills.hits(arrival, [price])
        assert abs(hit.expected - before) <= before / 16 + 128
        exact += 150_000 * (arrival.prompt_tokens - hit.expected) + 15_000 * hit.expected
        exact += 600_000 * arrival.output_tokens
        before = arrival.prompt_tokens
    dollars = found["dollars"]
    assert dollars["api_usd"] == pytest.approx(exact / PUSD_PER_USD, rel=1e-6)
    assert dollars["all_api_usd"] == pytest.approx(dollars["api_usd"], rel=1e-6)
    assert dollars["saved_usd"] == pytest.approx(-dollars["fixed_usd"])
    plain = sum(150_000 * each.prompt_tokens + 600_000 * 50 for each in arrivals) / PUSD_PER_USD
    assert dollars["api_usd"] < 0.3 * plain


def test_pauses_beyond_the_providers_time_cost_the_whole_prompt(cached, under) -> None:
    """The control of the test above: nothing is left in the cache."""
    arrivals = session(400.0)
    plain = sum(150_000 * each.prompt_tokens + 600_000 * 50 for each in arrivals) / PUSD_PER_USD
    assert play(cached, under, arrivals)["dollars"]["api_usd"] == pytest.approx(plain)


def test_what_was_charged_as_cached_is_charged_so_again_and_nowhere_else(cached, under) -> None:
    there = session(recorded=True, cached=120_000, api="openai/mini")
    here = [each._replace(session="") for each in there]
    pusd = sum(
        150_000 * (each.prompt_tokens - 120_000) + 15_000 * 120_000 + 600_000 * 50 for each in here
    )
    assert play(cached, under, here)["dollars"]["api_usd"] == pytest.approx(pusd / PUSD_PER_USD)
    other = [each._replace(api="other/m") for each in here]
    plain = sum(150_000 * each.prompt_tokens + 600_000 * 50 for each in other) / PUSD_PER_USD
    assert play(cached, under, other)["dollars"]["api_usd"] == pytest.approx(plain)
