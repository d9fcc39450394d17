"""Score of a traffic window: what ran, what was advised, and what changes earned. No I/O."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gateway.scaling.advised_fleet import AdvisedEngine
from ledger.economics.scaling_score import (
    InstanceRent,
    PlanSum,
    ScoredSpan,
    ServedClass,
    api_curve,
    at,
    least_engines,
    marginal_pusd,
)
from ledger.fleet.fleet_records import FleetChange, FleetInstance
from ledger.money import divide_half_even
from ledger.reports.fleet_demand import DemandedClass

US = 1_000_000


@dataclass(frozen=True, slots=True)
class PricedWindow:
    """Time span with its arrivals by class.

    `running_ppm` is what ran in it, in millionths of a request; `None` if the ends of requests are
    unknown: then each counts wholly where it arrived.
    """

    start_us: int
    end_us: int
    arrived: Mapping[str, int]
    running_ppm: Mapping[str, int] | None = None

    @property
    def length_us(self) -> int:
        return self.end_us - self.start_us

    def work_us(self, item: DemandedClass) -> int:
        """Return the engine time of a class in the window, in microseconds."""
        if self.running_ppm is None:
            return self.arrived.get(item.name, 0) * item.engine_us
        return divide_half_even(self.running_ppm.get(item.name, 0) * item.engine_us, US)


@dataclass(frozen=True, slots=True)
class ScoreTerms:
    """Terms by which a pool's windows are scored; `start_us` is the duration of a start."""

    rent: InstanceRent
    capacity_ppm: int
    most: int
    fixed_engines: int
    start_us: int


def served_classes(
    window: PricedWindow, classes: Iterable[DemandedClass]
) -> tuple[ServedClass, ...]:
    """Return the arrivals with the price and engine time of their class."""
    return tuple(
        ServedClass(
            item.name,
            window.arrived.get(item.name, 0),
            item.engine_us,
            item.pusd_per_request,
            item.movable,
            None if window.running_ppm is None else window.running_ppm.get(item.name, 0),
        )
        for item in classes
    )


def score_window(
    window: PricedWindow,
    classes: Sequence[DemandedClass],
    terms: ScoreTerms,
    ran: tuple[int, int],
    advised: Sequence[AdvisedEngine] | None,
) -> ScoredSpan:
    """Return a window's score; `ran` is the number of serving engines, and their rent.

    `advised` is `None` if the plan acts: then the running engines are the advised ones.
    """
    served = served_classes(window, classes)
    counts = {"length_us": window.length_us, "capacity_ppm": terms.capacity_ppm}
    curve = api_curve(served, most=terms.most, **counts)
    real = PlanSum(ran[1], at(curve, ran[0]))
    thought = real
    if advised is not None:
        span = (window.start_us, window.end_us)
        thought = PlanSum(
            sum(engine.rent_pusd(terms.rent, *span) for engine in advised),
            at(curve, sum(engine.serves(*span) for engine in advised)),
        )
    return ScoredSpan(
        start_us=window.start_us,
        covered_us=window.length_us,
        requests=sum(item.requests for item in served),
        ran=real,
        advised=thought,
        curve=tuple(curve),
        one_rent_pusd=window_rent_pusd(window, terms),
        least=min(terms.most, least_engines(served, **counts)),
        fixed_engines=terms.fixed_engines,
    )


def window_rent_pusd(window: PricedWindow, terms: ScoreTerms) -> int:
    """Return one engine's rent of a window by the second, as in a fixed fleet."""
    return InstanceRent(terms.rent.pusd_per_hour).bill_pusd(window.start_us, window.end_us)


def ran_in(window: PricedWindow, instances: Iterable[FleetInstance]) -> tuple[int, int]:
    """Return how many of these engines served the whole window, and the rent of all."""
    listed = list(instances)
    served = sum(
        item.owned
        and item.ready_us is not None
        and item.ready_us <= window.start_us
        and (item.stop_us is None or item.stop_us >= window.end_us)
        and (item.gone_us is None or item.gone_us >= window.end_us)
        for item in listed
    )
    return served, sum(item.rent_pusd(window.start_us, window.end_us) for item in listed)


def realised(
    window: PricedWindow,
    curve: Sequence[int],
    terms: ScoreTerms,
    changes: Iterable[FleetChange],
) -> dict[int, int]:
    """Return the pico-USD that a window brought to each counted change, by number.

    A start earns what its engine avoids, less its rent; a stop saves the rent and loses the avoided
    cost.
    """
    rent_pusd, found = window_rent_pusd(window, terms), {}
    for change in changes:
        begins_us = change.at_us if change.verb == "stop" else change.at_us + terms.start_us
        if change.verb not in ("start", "stop") or change.at_us > window.start_us:
            continue
        avoided = marginal_pusd(curve, change.engines) if window.start_us >= begins_us else 0
        earned = avoided - rent_pusd
        found[change.id] = earned if change.verb == "start" else -earned
    return found
