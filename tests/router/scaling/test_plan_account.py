"""The sums beside a number: they add up, and say what they leave out."""

import pytest

from router.scaling.demand import PoolDemand
from router.scaling.engine_worth import DemandMix
from router.scaling.plan import (
    ArrivalWindow,
    ClassArrivals,
    DemandClass,
    EngineLease,
    FleetState,
    PoolTerms,
    RentTerms,
    ScaleReason,
)
from router.scaling.plan_account import PlanBasis, account

RENT = 2 * 10**12
CHAT = DemandClass("chat", 1.0, 10**9)


def basis(
    running: int = 2,
    *,
    priced: bool = True,
    start_s: float = 0.0,
    minutes: int = 600,
    idle: int = 0,
) -> PlanBasis:
    """Four engines' traffic for hours, each worth three rents; none in the first `idle` minutes."""
    demand = PoolDemand()
    for minute in range(1, minutes + 1):
        many = 240.0 * (minute > idle)
        arrived = (ClassArrivals("chat", many, many),)
        demand.observe(ArrivalWindow(minute * 60_000_000, 60.0, arrived))
    engines = tuple(EngineLease(str(place), 0, 0) for place in range(running))
    return PlanBasis(
        PoolTerms("chat", RentTerms(RENT), start_s, capacity=1.0, cold_pusd=5),
        demand,
        FleetState(600 * 60_000_000, engines, (CHAT,)),
        DemandMix.ordered([], [(1.0, 3.0 * RENT)]),
        priced,
    )


def test_alternatives_are_rent_and_what_is_bought() -> None:
    plan = account(basis(), 4, (), ScaleReason.EARNS_RENT)
    rows = {row.engines: row for row in plan.alternatives}
    assert sorted(rows) == [0, 2, 3, 4, 5]
    assert rows[4].rent_pusd == 4 * RENT
    assert rows[0].api_pusd == pytest.approx(12 * RENT, rel=0.02)
    assert rows[2].api_pusd == pytest.approx(6 * RENT, rel=0.05)
    assert rows[4].api_pusd == pytest.approx(0, abs=0.5 * RENT)
    assert [rows[count].start_pusd for count in (0, 2, 3, 4)] == [0, 0, 5, 10]
    assert min(plan.alternatives, key=lambda row: row.total_pusd).engines in {4, 5}


def test_a_jump_from_nothing_is_no_factor_of_what_comes_next() -> None:
    rows = account(basis(minutes=30, idle=15), 4, (), ScaleReason.HOLD).alternatives
    assert rows[0].engines == 0
    assert rows[0].api_pusd == pytest.approx(12 * RENT, rel=0.4)


def test_what_starts_serves_after_its_start() -> None:
    at_once, later = basis(), basis(start_s=900.0)
    rows = [
        next(row for row in account(each, 4, (), ScaleReason.HOLD).alternatives if row.engines == 4)
        for each in (at_once, later)
    ]
    assert rows[1].api_pusd - rows[0].api_pusd == pytest.approx(2 * 3 * RENT * 900 / 3600, rel=0.1)


def test_the_engines_at_the_edge_are_said_beside_their_rent() -> None:
    plan = account(basis(), 4, (), ScaleReason.EARNS_RENT)
    assert plan.last is not None
    assert plan.last.place == 4
    assert plan.last.value_pusd > RENT > plan.next.value_pusd
    assert plan.sentence.startswith("chat: 2 to 4 engines: the next engine earns more")
    assert "engine 5 avoids $" in plan.sentence
    assert "costs $2.00" in plan.sentence
    assert account(basis(), 0, (), ScaleReason.BELOW_RENT).last is None


def test_an_unknown_price_is_no_value() -> None:
    plan = account(basis(priced=False), 2, (), ScaleReason.UNPRICED)
    assert plan.next.value_pusd is None
    assert plan.sentence.endswith("what an engine avoids is not known.")
