"""Prices of an adversary, and how much its hard budgets have."""

from collections.abc import Sequence
from typing import Any

from adversary_calls import AdversaryCall
from hypothesis import strategies as st

from ledger.prices.book import PriceTerms, TierRates, cost_pusd, rates_from
from ledger.prices.rates import Price

PER_MILLION = 10**6  # pico-USD a token, of one USD for a million
UNITS = {"second_pusd": 100 * PER_MILLION, "search_pusd": 2_000 * PER_MILLION}


@st.composite
def terms(
    draw: Any, *, sound: bool = False, tiers: bool = False, units: bool = False
) -> PriceTerms:
    read, write = draw(st.integers(1, 20)), draw(st.integers(1, 80))
    listed = {"input": read * PER_MILLION, "output": write * PER_MILLION}
    if draw(st.integers(0, 3)):
        listed |= {"cached": listed["input"] // 10, "cache_write": listed["input"] * 5 // 4}
    if draw(st.booleans()):
        listed["reasoning"] = listed["output"] * draw(st.sampled_from((1, 3))) // 2
    if sound:
        listed |= {"audio_input": 40 * listed["input"], "audio_output": 8 * listed["output"]}
    schedules: tuple[TierRates, ...] = ()
    if draw(st.booleans()):
        dear = {name: rate * 2 for name, rate in listed.items()}
        schedules = (TierRates("standard", draw(st.integers(20, 200)), rates_from(dear)),)
    if tiers:
        dear = {name: rate * 3 for name, rate in listed.items()}
        schedules = (TierRates("priority", 0, rates_from(dear)), *schedules)
    return PriceTerms(
        rates_from(listed),
        schedules,
        request_pusd=draw(st.sampled_from((0, 5_000 * PER_MILLION))),
        uplift_ppm=draw(st.sampled_from((0, 100_000))),
        **(UNITS if units else {}),
    )


def limit_pusd(terms: PriceTerms, calls: Sequence[AdversaryCall], *, part: float | None) -> int:
    """An ample budget, or a `part` of some times what the calls cost."""
    if part is None:
        return 10**16
    price = Price(1, "up/m", "adversary", 0, terms)
    cost = sum(cost_pusd(call.made or call.least, price) for call in calls)
    return int(part * (8 * cost + 10**9))
