"""Simulation of a pool that sizes itself: recorded minutes replayed with its planner.

Prices and engine time are those of the span, as in the verdict. The day before is used for learning
and not counted.
"""

from collections.abc import Callable, Iterator, Mapping

from sqlalchemy import Connection

from gateway.scaling.played_fleet import arrival_window, play_windows
from gateway.scaling.pool_setup import FOLLOW_US, PoolSetup
from gateway.scaling.scoring import PricedWindow
from gateway.scaling.traffic_observer import WINDOW_US
from ledger.economics.scaling_score import ScoredSpan
from ledger.reporting_zone import ReportingZone
from ledger.reports.fleet_demand import (
    arrivals,
    demanded_classes,
    first_arrival_us,
    running_ppm,
)
from ledger.reports.scaling_read import EarnedDay, by_day
from ledger.spans import DAY_US, Scope
from router.scaling.plan import SizesFleet


class UnknownDemandError(Exception):
    """Error: nothing can be replayed; the text says what is unknown, and the remedy."""


def replay_traffic(
    connection: Connection,
    setup: PoolSetup,
    span: tuple[int, int],
    make: Callable[[], SizesFleet],
) -> list[EarnedDay]:
    """Return the days of a span, in microseconds since the epoch, as under a plan.

    `advised` of a day is the plan's cost, `ran` that of the configured fleet. Raises
    `UnknownDemandError`.
    """
    start_us, end_us = (at_us - at_us % WINDOW_US for at_us in span)
    first_us = first_arrival_us(connection, setup.models)
    if first_us is None or first_us >= end_us:
        raise UnknownDemandError(f"pool {setup.pool} had no traffic in this span")
    start_us = max(start_us, first_us - first_us % WINDOW_US)
    classes = demanded_classes(connection, setup.pool, Scope(start_us, end_us))
    if not classes:
        raise UnknownDemandError(
            f"the capacity of an engine of pool {setup.pool} is not known yet. It is "
            "measured while "
            "the engine serves; `breakeven ledger report` shows what is missing"
        )
    planner = make()
    learned_us = max(start_us - DAY_US, first_us - first_us % WINDOW_US)
    for window in _windows(connection, setup, learned_us, start_us):
        planner.observe(arrival_window(window, classes))
    windows = _windows(connection, setup, start_us, end_us)
    spans: Iterator[ScoredSpan] = play_windows(
        planner,
        windows,
        classes,
        setup.score_terms(),
        serving=setup.places,
        drain_us=FOLLOW_US,
    )
    return by_day(spans, ReportingZone(setup.timezone))


def _windows(
    connection: Connection, setup: PoolSetup, start_us: int, end_us: int
) -> Iterator[PricedWindow]:
    """Read one day at a time; minutes without requests are included.

    A request's engine time is spread over its duration. Counted in its first minute, long requests
    would need more engines than they did.
    """
    minutes: Mapping[int, Mapping[str, int]] = {}
    running: Mapping[int, Mapping[str, int]] = {}
    until_us = start_us
    for at_us in range(start_us, end_us, WINDOW_US):
        if at_us >= until_us:
            until_us = min(end_us, at_us + DAY_US)
            minutes = arrivals(connection, setup.models, at_us, until_us)
            running = running_ppm(connection, setup.models, at_us, until_us)
        yield PricedWindow(at_us, at_us + WINDOW_US, minutes.get(at_us, {}), running.get(at_us, {}))
