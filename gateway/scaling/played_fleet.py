"""Simulation of a pool sized by its plan in virtual time, over known traffic. No I/O.

Windows are priced as in the scoring of advice (`gateway.scaling.scoring`). Each plan is made at the
start of a window and knows only earlier windows. An engine costs rent from its order, serves whole
windows after its start, and costs rent while it drains.
"""

from collections.abc import Iterable, Iterator, Sequence

from gateway.scaling import advised_fleet
from gateway.scaling.scoring import PricedWindow, ScoreTerms, score_window, window_rent_pusd
from ledger.economics.scaling_score import ScoredSpan
from ledger.reports.fleet_demand import DemandedClass
from router.scaling.plan import (
    ArrivalWindow,
    ClassArrivals,
    DemandClass,
    FleetState,
    SizesFleet,
)

US = 1_000_000


def play_windows(
    planner: SizesFleet,
    windows: Iterable[PricedWindow],
    classes: Sequence[DemandedClass],
    terms: ScoreTerms,
    *,
    serving: int,
    drain_us: int = 0,
) -> Iterator[ScoredSpan]:
    """Yield the score of each window; `serving` engines run at the start of the first.

    In each span, `advised` is the cost of the plan's engines, `ran` that of the configured fleet.
    """
    fleet: list[advised_fleet.AdvisedEngine] | None = None
    demand = demand_classes(classes)
    for window in windows:
        if fleet is None:
            fleet = advised_fleet.begin(serving, window.start_us)
        plan = planner.plan(FleetState(window.start_us, advised_fleet.leases(fleet), demand))
        fleet = advised_fleet.follow(
            fleet,
            plan.wanted,
            plan.stop,
            now_us=window.start_us,
            start_us=terms.start_us,
            drain_us=drain_us,
        )
        paid = terms.fixed_engines * window_rent_pusd(window, terms)
        yield score_window(window, classes, terms, (terms.fixed_engines, paid), fleet)
        planner.observe(arrival_window(window, classes))
        fleet = advised_fleet.forget_scored(fleet, window.end_us)


def demand_classes(classes: Iterable[DemandedClass]) -> tuple[DemandClass, ...]:
    """Return classes in the planner's format."""
    return tuple(
        DemandClass(item.name, item.engine_us / US, item.pusd_per_request, item.movable)
        for item in classes
    )


def arrival_window(window: PricedWindow, classes: Iterable[DemandedClass]) -> ArrivalWindow:
    """Return a window in the planner's format, without classes of unknown demand."""
    seen = [
        (item, window.arrived.get(item.name, 0), window.work_us(item))
        for item in sorted(classes, key=lambda item: item.name)
    ]
    return ArrivalWindow(
        window.end_us,
        window.length_us / US,
        tuple(
            ClassArrivals(item.name, float(count), work_us / US)
            for item, count, work_us in seen
            if count or work_us
        ),
    )
