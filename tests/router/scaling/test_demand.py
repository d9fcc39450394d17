"""What a pool's planner remembers of its traffic."""

import json

import pytest

from router.scaling.demand import OTHER, PoolDemand
from router.scaling.plan import ArrivalWindow, ClassArrivals, DemandClass


def window(minute: int, *arrivals: ClassArrivals, length_s: float = 60.0) -> ArrivalWindow:
    return ArrivalWindow(int(minute * length_s * 1e6), length_s, arrivals)


def steady(minutes: int, length_s: float = 60.0) -> PoolDemand:
    demand = PoolDemand()
    for minute in range(1, minutes + 1):
        chat = ClassArrivals("chat", 10 * length_s, 2 * length_s)
        inner = ClassArrivals("inner", 1 * length_s, 0.5 * length_s)
        demand.observe(window(minute, chat, inner, length_s=length_s))
    return demand


def test_rates_shares_and_bands_of_steady_traffic() -> None:
    demand = steady(300)
    assert demand.work.rate() == pytest.approx(2.5)
    assert demand.share("chat") == pytest.approx(0.8)
    band = demand.forecast("chat", 180.0)
    assert band.low <= band.mean <= band.high
    assert band.mean == pytest.approx(10, rel=0.05)
    assert demand.forecast("nobody", 180.0).mean == 0.0


def test_a_forecast_after_a_jump_from_nothing_stays_inside_of_its_band() -> None:
    demand = PoolDemand()
    for minute in range(30):
        demand.observe(window(minute, ClassArrivals("chat", 180.0 * (minute > 12), 60.0)))
    band = demand.forecast("chat", 60.0)
    assert band.low <= band.mean <= band.high
    assert band.mean == pytest.approx(3.0, rel=0.1)


def test_short_windows_add_up_to_minutes() -> None:
    """Ten seconds are looked at as the minute that ends with them."""
    demand = steady(60, length_s=10.0)
    assert demand.work.forecaster.seen == 10
    assert demand.work.rate() == pytest.approx(2.5)
    demand.observe(window(61, ClassArrivals("chat", 0.0, 85.0), length_s=10.0))
    assert demand.work.rate() == pytest.approx((5 * 25 + 85) / 60)


def test_rent_by_the_hour_is_planned_in_ten_minutes() -> None:
    assert steady(60).coarse.forecaster.seen == 6
    coarse = steady(12, length_s=600.0)
    assert coarse.coarse is coarse.work


def test_a_gap_holds_the_last_rates_and_no_traffic_does_not() -> None:
    demand = steady(100)
    demand.observe(ArrivalWindow(101 * 60_000_000, 60.0, None))
    assert demand.work.rate() == pytest.approx(2.5)
    demand.observe(window(102))
    assert demand.work.rate() == 0.0


def test_what_internal_traffic_needs_is_its_upper_end_until_a_day_without() -> None:
    demand, inner = steady(300), DemandClass("inner", 0.5, None, movable=False)
    needed = demand.needed_work(inner, 240.0, 300 * 60.0)
    assert 0.5 <= needed < 0.7
    assert demand.needed_work(inner, 240.0, 300 * 60.0 + 86_401) == 0.0
    assert demand.needed_work(DemandClass("new", 1.0, None), 240.0, 0.0) == 0.0


def test_engine_time_of_a_request_is_that_of_an_hour_also_where_it_runs_on() -> None:
    """One request of 300 s in ten minutes, whose engine time comes in parts of a minute."""
    demand, inner = PoolDemand(), DemandClass("inner", 1.0, None, movable=False)
    for minute in range(1, 601):
        work_s = 60.0 if 1 <= minute % 10 <= 5 else 0.0
        demand.observe(window(minute, ClassArrivals("inner", float(minute % 10 == 1), work_s)))
        if minute == 590:
            kept = PoolDemand.from_memory(json.loads(json.dumps(demand.memory())))
    assert demand.needed_work(inner, 240.0, 600 * 60.0) >= 0.5
    assert demand._work_s["inner"] == pytest.approx(300.0, rel=0.1)
    assert kept._work_s["inner"] == pytest.approx(300.0, rel=0.1)


def test_memory_is_bounded_whatever_classes_arrive() -> None:
    demand = PoolDemand()
    for minute in range(1, 200):
        demand.observe(window(minute, ClassArrivals(f"class {minute}", 60.0, 6.0)))
    assert len(demand.names) <= 49
    assert OTHER in demand.names
    assert demand.work.rate() == pytest.approx(0.1)
    assert len(json.dumps(demand.memory())) < 700_000


def test_memory_goes_through_json() -> None:
    demand = steady(300)
    other = PoolDemand.from_memory(json.loads(json.dumps(demand.memory())))
    assert other.forecast("chat", 180.0).mean == pytest.approx(demand.forecast("chat", 180.0).mean)
    assert other.share("inner") == demand.share("inner")
    assert other.coarse is not other.work
    assert not PoolDemand.from_memory({}).observed


@pytest.mark.parametrize("name", ["window_s", "work", "coarse", "classes"])
def test_damaged_memory_is_named(name) -> None:
    memory = steady(30).memory()
    memory[name] = None
    with pytest.raises(ValueError, match=name):
        PoolDemand.from_memory(memory)


def test_a_window_without_a_length_is_refused() -> None:
    with pytest.raises(ValueError, match="length_s"):
        PoolDemand().observe(ArrivalWindow(0, 0.0, ()))
