"""Plan for the number of engines of a pool, and the planner's inputs, as data.

Times are microseconds since the epoch and are passed in. Work is engine time: a request of a class
needs `engine_s` seconds of one engine, and an engine provides `capacity` seconds of work a second
within its promises. Money is whole pico-USD. Unknown values are `None`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class ScaleReason(StrEnum):
    """Reason for a plan's number of engines; members are stored by value."""

    HOLD = "hold"
    EARNS_RENT = "earns_rent"
    BELOW_RENT = "below_rent"
    PAID_AHEAD = "paid_ahead"
    INTERNAL_NEED = "internal_need"
    LEAST = "least"
    MOST = "most"
    RESERVED = "reserved"
    UNPRICED = "unpriced"
    UNOBSERVED = "unobserved"


REASON_WORDS: dict[ScaleReason, str] = {
    ScaleReason.HOLD: "no change pays for itself",
    ScaleReason.EARNS_RENT: "the next engine earns more than its rent and its start",
    ScaleReason.BELOW_RENT: "the last engine earns less than its rent",
    ScaleReason.PAID_AHEAD: "the last engine is paid for until its billing period ends",
    ScaleReason.INTERNAL_NEED: "traffic that may not leave needs them, and their spare",
    ScaleReason.LEAST: "the configuration wants at least so many",
    ScaleReason.MOST: "the configuration allows no more",
    ScaleReason.RESERVED: "reserved engines are paid for whether they run or not",
    ScaleReason.UNPRICED: "no price elsewhere is known for any traffic, so nothing is changed",
    ScaleReason.UNOBSERVED: "no traffic was observed yet, so nothing is changed",
}


@dataclass(frozen=True, slots=True)
class RentTerms:
    """Cost of one engine from its start to its stop.

    Rent is paid from the start request, in whole units of `unit_s` (1: by the second, 3600: by the
    hour), for at least `least_s`. The first `reserved` engines are paid for in any case.
    """

    pusd_per_hour: int
    unit_s: int = 1
    least_s: int = 60
    reserved: int = 0


@dataclass(frozen=True, slots=True)
class PoolTerms:
    """Properties of a pool that the planner needs.

    `start_s` is the time from a start request until the engine serves, as measured on its host.
    `drain_s` is the time from a stop request until the rent ends. `cold_pusd` is the cost of cold
    caches after one start. `internal_spare` is the number of engines beyond the need of
    internal-only traffic. `interruptions_per_hour` is how often a spot engine is reclaimed, so that
    another start is paid.
    """

    pool: str
    rent: RentTerms
    start_s: float
    capacity: float = 0.85
    drain_s: float = 0.0
    cold_pusd: int = 0
    least: int = 0
    most: int = 64
    internal_spare: int = 1
    interruptions_per_hour: float = 0.0


@dataclass(frozen=True, slots=True)
class DemandClass:
    """Requests with the same price elsewhere and the same demand of engine time.

    `pusd_per_request` is the price at the cheapest API that policy, residency and features allow,
    `None` if unknown. `movable` is false for requests that may not leave.
    """

    name: str
    engine_s: float
    pusd_per_request: int | None
    movable: bool = True


@dataclass(frozen=True, slots=True)
class ClassArrivals:
    """Arrived requests of one class, and the engine time that they need in seconds: `work_s`.

    The work is computed from actual lengths if known, else as `requests` times the class's
    `engine_s`.
    """

    name: str
    requests: float
    work_s: float


@dataclass(frozen=True, slots=True)
class ArrivalWindow:
    """Arrivals of one window by class, wherever they were served.

    A class that is missing had none. `arrivals` is `None` for a gap: the last rates stay valid.
    Batches are not arrivals; see `FleetState.batches`.
    """

    ends_us: int
    length_s: float
    arrivals: tuple[ClassArrivals, ...] | None


@dataclass(frozen=True, slots=True)
class EngineLease:
    """One engine that runs or starts: rent counts from `asked_us`, service from `ready_us`.

    `ready_us` is an estimate during the start. `stoppable` is false for reserved hours and for
    engines of another owner.
    """

    token: str
    asked_us: int
    ready_us: int
    stoppable: bool = True


@dataclass(frozen=True, slots=True)
class BatchWorkload:
    """Waiting batch work: engine-seconds, cost elsewhere, and deadline."""

    name: str
    engine_s: float
    pusd: int | None
    due_us: int


@dataclass(frozen=True, slots=True)
class FleetState:
    """Current state of a fleet: engines, class prices, batches, and the spot rent if any.

    `rent_pusd_per_hour` replaces the rent of `RentTerms` for engines that are not reserved.
    """

    at_us: int
    engines: tuple[EngineLease, ...]
    classes: tuple[DemandClass, ...]
    batches: tuple[BatchWorkload, ...] = ()
    rent_pusd_per_hour: int | None = None


@dataclass(frozen=True, slots=True)
class ClassForecast:
    """Forecast of one class in requests per second: mean and band.

    The time is when an engine requested now would serve, `horizon_s` ahead. The band holds 80 % of
    the expected values; values outside it count in the mean as its ends.
    """

    name: str
    horizon_s: float
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class FleetAlternative:
    """One number of engines with its expected cost in pico-USD over the plan's horizon.

    `rent_pusd` includes the start-up and rent paid ahead. `api_pusd` is the remaining cost of APIs.
    """

    engines: int
    rent_pusd: int
    api_pusd: int
    start_pusd: int

    @property
    def total_pusd(self) -> int:
        return self.rent_pusd + self.api_pusd + self.start_pusd


@dataclass(frozen=True, slots=True)
class EngineWorth:
    """Expected earnings of one engine an hour over the horizon, and its rent an hour.

    `value_pusd` is `None` if no price elsewhere is known.
    """

    place: int
    value_pusd: int | None
    rent_pusd: int


@dataclass(frozen=True, slots=True)
class ScalePlan:
    """The number of engines that a pool should have now, and the reason.

    `running` counts engines that run or start. `stop` names the engines to drain, in order; starts
    are `wanted` minus the engines that stay. `last` is the last wanted engine (`None` at zero),
    `next` the first that is not wanted. `look_again_us` is when to make the next plan.
    """

    pool: str
    at_us: int
    wanted: int
    running: int
    stop: tuple[str, ...]
    horizon_s: float
    last: EngineWorth | None
    next: EngineWorth
    forecast: tuple[ClassForecast, ...]
    alternatives: tuple[FleetAlternative, ...]
    reason: ScaleReason
    sentence: str
    look_again_us: int

    @property
    def starts(self) -> int:
        return max(0, self.wanted - self.running + len(self.stop))


class SizesFleet(Protocol):
    """Interface of a fleet planner, implemented by `router.scaling.planner.FleetPlanner`.

    `observe` takes each window once, in order. `plan` changes nothing, so the same state gives the
    same plan. `memory` returns a JSON mapping that `FleetPlanner.from_memory(terms, memory)`
    restores after a restart.
    """

    def observe(self, window: ArrivalWindow) -> None: ...

    def plan(self, state: FleetState) -> ScalePlan: ...

    def memory(self) -> dict[str, object]: ...
