"""The number of engines: its properties over drawn traffic, and each thing that bounds it."""

import json
import random
import time
from dataclasses import replace
from math import ceil, exp

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from router.scaling.plan import (
    ArrivalWindow,
    BatchWorkload,
    ClassArrivals,
    DemandClass,
    EngineLease,
    FleetState,
    PoolTerms,
    RentTerms,
    ScaleReason,
)
from router.scaling.planner import FleetPlanner

RENT = 2_500_000_000_000
MINUTES = 400
CHAT = DemandClass("chat", 0.1, round(3 * RENT / 3600 / 0.85 * 0.1))  # three times break-even
INNER = DemandClass("inner", 0.1, None, movable=False)
TERMS = PoolTerms("chat", RentTerms(RENT), start_s=180.0)


def planner(
    rate: float = 40.0, inner: float = 0.0, terms: PoolTerms = TERMS, seed: int = 1
) -> FleetPlanner:
    """One that saw some hours of requests a second around a rate."""
    found, rng, level = FleetPlanner(terms), random.Random(seed), 0.0
    for minute in range(1, MINUTES + 1):
        level = 0.95 * level + rng.gauss(0, 0.05)
        count = rate * exp(level) * 60
        arrivals = [ClassArrivals("chat", count, count * 0.1)]
        if inner:
            arrivals.append(ClassArrivals("inner", inner * 60, inner * 6))
        found.observe(ArrivalWindow(minute * 60_000_000, 60.0, tuple(arrivals)))
    return found


def leases(count: int, minutes: float = 90.0, *, stoppable: bool = True) -> tuple[EngineLease, ...]:
    asked = int((MINUTES - minutes) * 60e6)
    return tuple(EngineLease(f"e{n}", asked, asked + 1, stoppable) for n in range(count))


def state(engines: int = 5, *classes: DemandClass, **others) -> FleetState:
    return FleetState(MINUTES * 60_000_000, leases(engines), classes or (CHAT,), **others)


def priced(times: float) -> DemandClass:
    return replace(CHAT, pusd_per_request=round(CHAT.pusd_per_request * times))


INSIDE = st.floats(0, 20, allow_subnormal=False)  # its work is a part of it, and not rounded to 0


@settings(max_examples=25, deadline=None)
@given(st.floats(0, 300), st.integers(0, 40), st.floats(0.05, 4), st.integers(0, 3), INSIDE)
@example(0.0, 0, 1.0, 0, 2.220446049250313e-16)  # work that the rounding of a division hides
def test_bounds_repetition_and_explanation(rate, running, price, seed, inner) -> None:
    made = planner(rate, inner, seed=seed)
    now = state(running, priced(price), INNER)
    plan = made.plan(now)
    assert plan == made.plan(now)
    assert 0 <= plan.wanted <= TERMS.most
    assert plan.wanted == running + plan.starts - len(plan.stop)
    assert set(plan.stop) <= {engine.token for engine in now.engines}
    assert not (plan.starts and plan.stop)
    assert plan.wanted >= (ceil(inner * 0.1 / 0.85) + 1 if inner > 0 else 0)
    assert {0, running, plan.wanted} <= {row.engines for row in plan.alternatives}
    assert all(row.low <= row.mean <= row.high for row in plan.forecast)
    assert f"{plan.wanted} engines" in plan.sentence


def test_fewer_at_dearer_rent_and_more_at_dearer_apis() -> None:
    made = planner()
    by_rent = [
        made.plan(state(5, rent_pusd_per_hour=round(RENT * times))).wanted
        for times in (0.3, 0.6, 1.0, 1.6, 2.4, 3.5)
    ]
    by_price = [made.plan(state(5, priced(times))).wanted for times in (0.2, 0.5, 1.0, 2.0, 5.0)]
    assert by_rent == sorted(by_rent, reverse=True)
    assert by_price == sorted(by_price)
    assert by_rent[-1] == by_price[0] == 0
    assert by_rent[0] > by_rent[3] > 0


def test_fewer_where_engines_are_taken_away_often() -> None:
    """Each interruption pays another start: 480 a day of 180 s each make rent twice as dear."""
    wanted = [
        planner(terms=replace(TERMS, interruptions_per_hour=often)).plan(state(5, priced(0.5)))
        for often in (0.0, 2.0, 20.0)
    ]
    calm, some, many = (plan.wanted for plan in wanted)
    assert calm >= some > many


def test_more_for_more_internal_traffic() -> None:
    wanted = [planner(10.0, inner).plan(state(1, CHAT, INNER)).wanted for inner in (0, 5, 30, 90)]
    assert wanted == sorted(wanted)
    assert wanted[-1] >= ceil(90 * 0.1 / 0.85) + 1


def test_an_api_far_below_break_even_empties_the_pool_but_for_what_may_not_leave() -> None:
    plan = planner().plan(state(5, priced(0.1)))
    assert (plan.wanted, plan.reason, len(plan.stop)) == (0, ScaleReason.BELOW_RENT, 5)
    inside = planner(40.0, 5.0).plan(state(5, priced(0.1), INNER))
    assert (inside.wanted, inside.reason) == (2, ScaleReason.INTERNAL_NEED)


def test_a_start_needs_more_than_staying() -> None:
    """Between the rent and the rent with a start nothing changes: neither up nor down."""
    made = planner()
    engines = made.plan(state(5)).wanted
    assert made.plan(state(engines)).reason is ScaleReason.HOLD
    fewer, more = (made.plan(state(count)).wanted for count in (0, 12))
    assert fewer <= more
    slow = planner(terms=replace(TERMS, start_s=500.0, cold_pusd=RENT))
    assert slow.plan(state(0)).wanted < slow.plan(state(12)).wanted


def test_paid_hours_run_to_their_end() -> None:
    hourly = replace(TERMS, rent=RentTerms(RENT, unit_s=3600, least_s=3600))
    made = planner(1.0, terms=hourly)
    inside = FleetState(MINUTES * 60_000_000, leases(4, 90.0), (CHAT,))
    assert made.plan(inside).wanted == 4
    assert made.plan(inside).reason is ScaleReason.PAID_AHEAD
    ending = FleetState(MINUTES * 60_000_000, leases(4, 119.5), (CHAT,))
    assert made.plan(ending).wanted < 4
    drained = planner(1.0, terms=replace(hourly, drain_s=300.0))
    early = FleetState(MINUTES * 60_000_000, leases(4, 114.5), (CHAT,))
    assert drained.plan(early).wanted < 4


def test_a_least_time_is_served_out() -> None:
    made = planner(1.0, terms=replace(TERMS, rent=RentTerms(RENT, least_s=600)))
    young = FleetState(MINUTES * 60_000_000, leases(4, 5.0), (CHAT,))
    assert made.plan(young).stop == ()
    assert len(made.plan(replace(young, engines=leases(4, 11.0))).stop) >= 3


def test_reserved_and_foreign_engines_are_never_stopped() -> None:
    made = planner(1.0, terms=replace(TERMS, rent=RentTerms(RENT, reserved=2)))
    engines = leases(2, stoppable=False) + leases(5)[2:]
    plan = made.plan(replace(state(), engines=engines))
    assert plan.wanted == 2
    assert plan.stop == ("e2", "e3", "e4")
    foreign = planner(0.0).plan(replace(state(), engines=leases(3, stoppable=False)))
    assert (foreign.wanted, foreign.stop) == (3, ())


def test_limits_of_the_configuration() -> None:
    assert planner(400.0, terms=replace(TERMS, most=6)).plan(state(3)).wanted == 6
    assert planner(0.0, terms=replace(TERMS, least=2)).plan(state(3)).wanted == 2
    full = planner(400.0, terms=replace(TERMS, most=6)).plan(state(3))
    assert full.reason in {ScaleReason.MOST, ScaleReason.EARNS_RENT}


def test_batches_count() -> None:
    made, quiet = planner(1.0), state(0)
    due = quiet.at_us + 4 * 3_600_000_000
    work = BatchWorkload("nightly", 4 * 3600 * 3 * 0.85, 4 * 3 * 3 * RENT, due)
    assert made.plan(replace(quiet, batches=(work,))).wanted >= made.plan(quiet).wanted + 3
    cheap = replace(work, pusd=RENT)
    assert made.plan(replace(quiet, batches=(cheap,))).wanted == made.plan(quiet).wanted


def test_without_a_price_nothing_stops_and_it_is_said() -> None:
    plan = planner(10.0).plan(state(5, replace(CHAT, pusd_per_request=None)))
    assert (plan.wanted, plan.reason) == (5, ScaleReason.UNPRICED)
    assert plan.next.value_pusd is None
    assert "not known" in plan.sentence


def test_before_any_traffic_nothing_changes_but_to_the_limits() -> None:
    assert FleetPlanner(TERMS).plan(state(3)).wanted == 3
    assert FleetPlanner(TERMS).plan(state(3)).reason is ScaleReason.UNOBSERVED
    least = FleetPlanner(replace(TERMS, least=4)).plan(state(3))
    assert (least.wanted, least.reason, least.starts) == (4, ScaleReason.LEAST, 1)


def test_a_crowd_and_its_end() -> None:
    """Ten times the traffic is answered in minutes, and its end too."""
    made, engines = planner(20.0), leases(3)
    for minute in range(MINUTES + 1, MINUTES + 4):
        made.observe(
            ArrivalWindow(minute * 60_000_000, 60.0, (ClassArrivals("chat", 1.2e4, 1.2e3),))
        )
    crowd = made.plan(replace(state(), at_us=(MINUTES + 3) * 60_000_000, engines=engines))
    assert crowd.wanted >= 15
    for minute in range(MINUTES + 4, MINUTES + 8):
        made.observe(
            ArrivalWindow(minute * 60_000_000, 60.0, (ClassArrivals("chat", 1.2e3, 120.0),))
        )
    after = replace(state(), at_us=(MINUTES + 7) * 60_000_000, engines=leases(crowd.wanted))
    assert made.plan(after).wanted <= 6


def test_memory_over_a_restart_gives_the_same_number() -> None:
    made = planner(40.0, 5.0)
    again = FleetPlanner.from_memory(TERMS, json.loads(json.dumps(made.memory())))
    for running in (0, 3, 8):
        now = state(running, CHAT, INNER)
        assert again.plan(now).wanted == pytest.approx(made.plan(now).wanted, abs=1)
    with pytest.raises(ValueError, match="window_s"):
        FleetPlanner.from_memory(TERMS, {"work": 1})


def test_a_plan_is_cheap() -> None:
    """Most plans look up what is solved; one that solves all engines is bounded too."""
    made, spent = planner(300.0), []
    for running in (0, 10, 25, 36, 36, 35, 36, 37, 36):
        began = time.process_time()
        made.plan(state(running))
        spent.append(time.process_time() - began)
    assert sorted(spent)[len(spent) // 2] < 0.02
    assert sum(spent) < 1.0
