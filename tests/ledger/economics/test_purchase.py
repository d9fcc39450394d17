"""Reserve, rent, buy or stay: by hand on small figures, and what must hold of all of them."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.economics.cost import TokenBasis, UnitPrice
from ledger.economics.purchase import (
    HOURS_OF_A_MONTH,
    Commitment,
    DemandProfile,
    EngineOffer,
    Purchase,
    buy,
    npv_pusd,
    payback_month,
    rent,
    rent_spot,
    reserve,
    stay,
)
from ledger.economics.step_cost import load_curve

BOTH = TokenBasis.INPUT_OUTPUT
USD = 10**12
NONE = Fraction(0)
# 100 tokens in every minute, at $1 for a million: 4,380,000 tokens and $4.38 a month.
LOAD = load_curve([100] * 60)
PRICE = UnitPrice(10**6, BOTH)
MONTHLY = 100 * 60 * HOURS_OF_A_MONTH * 10**6
FLAT = DemandProfile(LOAD, 1, PRICE)
ENGINE = EngineOffer(pusd_per_hour=3 * 10**9, tokens_per_minute=60)  # $2.19 a month for 60 of 100


def test_a_month_at_the_api_is_its_tokens_and_grows() -> None:
    found = stay(FLAT, months=3)
    assert found.flows == (0, MONTHLY, MONTHLY, MONTHLY)
    grown = stay(DemandProfile(LOAD, 1, PRICE, Fraction(1, 10)), months=3)
    assert grown.flows == (0, MONTHLY, MONTHLY * Fraction(11, 10), MONTHLY * Fraction(121, 100))


def test_npv_is_what_is_paid_at_the_end_of_each_month_discounted() -> None:
    assert npv_pusd((5, 6, 7), NONE) == 18
    assert npv_pusd((0, *[0] * 11, 110 * USD), Fraction(1, 10)) == 100 * USD
    half_a_year = npv_pusd((0, *[0] * 5, 10**18), Fraction(21, 100))
    assert half_a_year == round(10**18 / Fraction(11, 10)), "1.21 a year is 1.1 a half"


def test_renting_takes_the_number_that_is_cheapest_in_each_month() -> None:
    rate = Fraction(3 * 10**9) * HOURS_OF_A_MONTH
    found = rent(FLAT, ENGINE, months=2)
    overflow = MONTHLY * 40 / 100
    assert found.gpus == (1, 1)
    assert found.flows[1] == rate + overflow, "a second GPU costs $2.19 and saves $1.75"
    dear = rent(FLAT, EngineOffer(9 * 10**9, 60), months=2)
    assert dear.gpus == (0, 0)
    assert dear.flows == stay(FLAT, months=2).flows


def test_a_reservation_is_renewed_whole_and_what_is_owed_counts() -> None:
    rate = Fraction(3 * 10**9) * HOURS_OF_A_MONTH / 2
    term = Commitment(12, Fraction(1, 2))
    found = reserve(FLAT, ENGINE, term, months=18, discount_per_year=NONE, gpus=1)
    overflow = MONTHLY * 40 / 100
    assert found.flows[1] == rate + overflow
    assert found.flows[18] == rate + overflow + 6 * rate
    chosen = reserve(FLAT, ENGINE, term, months=12, discount_per_year=NONE)
    assert set(chosen.gpus) == {2}, "at half the rate the second GPU pays"


def test_what_was_bought_has_its_price_its_power_and_its_book_value() -> None:
    bought = Purchase(30 * USD, life_months=24, residual=Fraction(1, 5), power_pusd_per_hour=10**9)
    assert bought.amortised_pusd_per_month == USD
    assert bought.book_value_pusd(12) == 18 * USD
    assert bought.book_value_pusd(99) == 6 * USD
    found = buy(FLAT, ENGINE, bought, months=12, discount_per_year=NONE, gpus=1)
    monthly = 10**9 * HOURS_OF_A_MONTH + MONTHLY * 40 / 100
    assert found.flows == (30 * USD, *[monthly] * 11, monthly - 18 * USD)
    assert found.cumulative()[-1] == 30 * USD + 12 * monthly


def test_payback_is_where_it_never_again_costs_more() -> None:
    alone = stay(FLAT, months=24)
    saved = MONTHLY * 60 / 100
    bought = Purchase(int(saved * 5) + 1, 48, NONE)
    found = buy(FLAT, EngineOffer(0, 60), bought, months=24, discount_per_year=NONE, gpus=1)
    assert payback_month(found, alone) == 6
    never = buy(FLAT, EngineOffer(0, 60), Purchase(10**18, 48, NONE), months=24,
                discount_per_year=NONE, gpus=1)  # fmt: skip
    assert payback_month(never, alone) is None


FEW = settings(max_examples=settings.default.max_examples // 3)  # each walks months of stairs
LOADS = st.lists(st.integers(0, 500), min_size=2, max_size=12).filter(any)
RATES = st.integers(1, 20 * 10**9)


@FEW
@given(LOADS, RATES, RATES, st.integers(0, 10))
def test_rented_costs_never_fall_with_the_rate_and_never_exceed_staying(
    load, item, other, growth
) -> None:
    demand = DemandProfile(load_curve(load), 1, PRICE, Fraction(growth, 100))
    low, high = sorted((item, other))
    cheap, dear = (rent(demand, EngineOffer(rate, 60, 10**11), months=3) for rate in (low, high))
    alone = stay(demand, months=3)
    for a, b, c in zip(cheap.flows, dear.flows, alone.flows, strict=True):
        assert a <= b <= c


@FEW
@given(LOADS, st.integers(1, 10**7), st.integers(1, 10**7), st.integers(1, 4))
def test_what_is_saved_never_falls_with_the_apis_price(load, item, other, gpus) -> None:
    low, high = sorted((item, other))
    saved = []
    for price in (low, high):
        demand = DemandProfile(load_curve(load), 1, UnitPrice(price, BOTH))
        term = Commitment(12, NONE)
        own = reserve(demand, ENGINE, term, months=12, discount_per_year=NONE, gpus=gpus)
        alone = stay(demand, months=12)
        saved.append(alone.npv_pusd(NONE) - own.npv_pusd(NONE))
    assert saved[0] <= saved[1]


@FEW
@given(LOADS, st.integers(0, 100), st.integers(0, 100), st.integers(1, 60))
def test_a_higher_residual_value_never_costs_more(load, item, other, months) -> None:
    low, high = sorted((item, other))
    rate = Fraction(8, 100)
    demand = DemandProfile(load_curve(load), 1, PRICE)
    cost = []
    for share in (low, high):
        bought = Purchase(30 * USD, 48, Fraction(share, 100))
        own = buy(demand, ENGINE, bought, months=months, discount_per_year=rate, gpus=1)
        cost.append(own.npv_pusd(rate))
    assert cost[1] <= cost[0]


@FEW
@given(LOADS, st.integers(1, 6 * 10**9), st.integers(0, 30))
def test_the_number_that_is_chosen_is_the_best_of_all(load, rate, discount) -> None:
    demand, term = DemandProfile(load_curve(load), 1, PRICE), Commitment(12, NONE)
    share = Fraction(discount, 100)
    engine = EngineOffer(rate, 60, 10**11)

    def cost(gpus: int | None) -> int:
        found = reserve(demand, engine, term, months=6, discount_per_year=share, gpus=gpus)
        return found.npv_pusd(share)

    assert cost(None) == min(cost(n) for n in range(1, 13))


@pytest.mark.parametrize("gpus", [1, 3])
def test_spares_are_paid_for_and_serve_nothing(gpus: int) -> None:
    term = Commitment(12, NONE)
    plain, spared = (
        reserve(
            FLAT,
            EngineOffer(10**9, 60, spares=spares),
            term,
            months=12,
            discount_per_year=NONE,
            gpus=gpus,
        )
        for spares in (0, 1)
    )
    assert spared.flows[1] - plain.flows[1] == 10**9 * HOURS_OF_A_MONTH


@settings(max_examples=20)
@given(st.integers(1, 400), st.integers(0, 99))
def test_spot_hours_are_worth_no_more_than_hours_that_stay(rate, lost) -> None:
    """At one price, an hour that may be taken away is worth at most one that stays."""
    demand = DemandProfile(load_curve([900, 0, 300, 0]), 1, UnitPrice(5_000, BOTH))
    engine = EngineOffer(rate * 1_000, 400, ops_pusd=7)
    kept = rent(demand, engine, months=3)
    spot = rent_spot(demand, engine, lost=Fraction(lost, 100), months=3)
    assert (spot.name, spot.gpus) == ("rent spot hours", kept.gpus)
    if not lost:
        assert spot.flows == kept.flows
    assert spot.npv_pusd(NONE) >= kept.npv_pusd(NONE)
    whole = rent_spot(demand, engine, lost=Fraction(1), months=3)
    ops = sum(7 for gpus in kept.gpus if gpus)
    assert whole.npv_pusd(NONE) == stay(demand, months=3).npv_pusd(NONE) + ops
