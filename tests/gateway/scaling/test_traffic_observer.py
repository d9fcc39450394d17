"""Minutes reach a planner once, whole and in order; forecasts are judged when their time comes."""

import pytest

from gateway.scaling import traffic_observer
from gateway.scaling.traffic_observer import TrafficObserver

S = 1_000_000
MINUTE = 60 * S


@pytest.fixture
def observed(world):
    world = world(mode="advise")
    began_us = world.now_us

    def see(known_s: float, through_s: float = 0):
        return world.scaler._observer.observe(
            world.planner, began_us + round(through_s * S), began_us + round(known_s * S), 0, (),
            scored_from_us=began_us,
        )  # fmt: skip

    world.scaler._observer.refresh(began_us)
    see.world, see.observer, see.began_us = world, world.scaler._observer, began_us
    return see


@pytest.mark.parametrize(
    ("known_s", "minutes"), [(60, 0), (64, 0), (65, 1), (130, 2), (100_000, 1440)]
)
def test_only_minutes_that_the_books_have_whole_are_read(observed, known_s, minutes):
    seen = observed(known_s)
    assert seen.through_us == observed.began_us + minutes * MINUTE
    assert len(seen.spans) == len(observed.world.planner.windows) == minutes


def test_a_window_has_the_engine_time_of_what_arrived(observed):
    observed(65)
    (window,) = observed.world.planner.windows
    (arrived,) = window.arrivals
    assert (arrived.name, arrived.requests, arrived.work_s) == ("chat", 120.0, 60.0)
    assert (window.ends_us, window.length_s) == (observed.began_us + MINUTE, 60.0)


def test_engine_time_counts_where_it_is_used_and_requests_where_they_arrive(observed, monkeypatch):
    """120 requests of four minutes: a quarter of their engine time is in each."""
    minutes = [observed.began_us + each * MINUTE for each in range(6)]
    told = []

    def running(_connection, models, start_us, end_us, usual_us):
        told.append((models, start_us, end_us, usual_us))
        return {at: {"chat": 120 * 250_000} for at in minutes[1:5]}

    monkeypatch.setattr(traffic_observer, "running_ppm", running)
    monkeypatch.setattr(traffic_observer, "usual_times", lambda *_: {"chat": 4 * MINUTE})
    monkeypatch.setattr(traffic_observer, "arrivals", lambda *_: {minutes[1]: {"chat": 120}})
    read_us = observed.began_us + 10 * MINUTE
    observed.observer.refresh(read_us)
    seen = observed(6 * 60 + 5)
    usual = (traffic_observer.UsualTimes(read_us, {"chat": 4 * MINUTE}),)
    assert told == [(("chat",), minutes[0], minutes[0] + 6 * MINUTE, usual)]
    windows = observed.world.planner.windows
    found = [(item.requests, item.work_s) for window in windows for item in window.arrivals]
    assert found == [(120.0, 15.0), (0.0, 15.0), (0.0, 15.0), (0.0, 15.0)]
    assert sum(span.all_api.api_pusd for span in seen.spans) == 120 * 10**10


def test_without_a_known_capacity_nothing_is_told(observed):
    observed.observer.classes = None
    assert observed(500).through_us == observed.began_us
    assert observed.world.planner.windows == []


def test_what_is_not_known_yet_is_looked_for_each_minute(observed, monkeypatch):
    reads = iter([None, None, ("known",), ("again",)])
    monkeypatch.setattr(traffic_observer, "demanded_classes", lambda *_: next(reads))
    observer, began_us = TrafficObserver(observed.world.setup, observed.world.ledger), 0
    seen = []
    for at_us in range(began_us, began_us + 8 * MINUTE, 30 * S):
        observer.refresh(at_us)
        seen.append(observer.classes)
    assert seen == [None] * 4 + [("known",)] * 12
    observer.refresh(began_us + 12 * MINUTE)
    assert observer.classes == ("again",)


def test_forecasts_are_judged_by_the_minute_that_they_are_for(observed):
    expect, began_us = observed.observer.expect, observed.began_us
    expect(began_us + 30 * S, 1.0, 3.0)  # 120 a minute are two a second
    expect(began_us + 31 * S, 9.0, 9.0)  # one a minute is enough
    expect(began_us + 95 * S, 2.5, 3.0)
    expect(began_us + 900 * S, 9.0, 9.0)
    observed(130)
    assert (observed.observer.inside, observed.observer.outside) == (1, 1)
