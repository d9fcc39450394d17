"""A plan for the number of engines of a pool, as data, and what the planner is told.

Times are microseconds since the epoch and are passed in. Work is engine time: a class of requests
needs `engine_s` seconds of one engine each, and an engine gives `capacity` seconds of work a second
within its promises. Money is whole pico-USD. What is not known is `None`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class ScaleReason(StrEnum):
    """Why a plan wants its number of engines; members are stored by value."""

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
    """The cost of one engine from its start to its stop.

    It is paid from the asking, in whole units of `unit_s` (1: by the second, 3600: by the hour),
    for at least `least_s`. The first `reserved` engines are paid for in any case.
    """

    pusd_per_hour: int
    unit_s: int = 1
    least_s: int = 60
    reserved: int = 0


@dataclass(frozen=True, slots=True)
class PoolTerms:
    """A pool as the planner needs it.

    `start_s`: from asking for an engine until it serves, as measured on its host. `drain_s`: from
    asking it to stop until its rent ends. `cold_pusd`: what cold caches cost after one start.
    `internal_spare`: engines beyond what internal-only traffic needs. `interruptions_per_hour`: how
    often an engine of a spot market is taken away, so that another start is paid.
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
    """Requests that share a price elsewhere and a demand of engine time.

    `pusd_per_request` is the price at the cheapest API that policy, residency and features let
    through, `None` where none is known. `movable` is false for what may not leave.
    """

    name: str
    engine_s: float
    pusd_per_request: int | None
    movable: bool = True


@dataclass(frozen=True, slots=True)
class ClassArrivals:
    """Requests of one class that arrived, and the engine time that they need: `work_s`.

    Where lengths are known the work is theirs, else `requests` times the class's `engine_s`.
    """

    name: str
    requests: float
    work_s: float


@dataclass(frozen=True, slots=True)
class ArrivalWindow:
    """Arrivals of one window by class; served here or elsewhere, both count.

    A class that is not named had none. `None` for `arrivals` is a gap: the last rates hold.
    Batches are no arrivals: `FleetState.batches` has them.
    """

    ends_us: int
    length_s: float
    arrivals: tuple[ClassArrivals, ...] | None


@dataclass(frozen=True, slots=True)
class EngineLease:
    """One engine that runs or starts: rent counts from `asked_us`, it serves from `ready_us`.

    `ready_us` is expected while it starts. `stoppable` is false for reserved hours and engines that
    somebody else owns.
    """

    token: str
    asked_us: int
    ready_us: int
    stoppable: bool = True


@dataclass(frozen=True, slots=True)
class BatchWorkload:
    """Batch work that waits: engine seconds, what they would cost elsewhere, and until when."""

    name: str
    engine_s: float
    pusd: int | None
    due_us: int


@dataclass(frozen=True, slots=True)
class FleetState:
    """The state of now: engines, prices of the classes, batches, and a spot rent in force.

    `rent_pusd_per_hour` replaces the rent of `RentTerms` for engines that are not reserved.
    """

    at_us: int
    engines: tuple[EngineLease, ...]
    classes: tuple[DemandClass, ...]
    batches: tuple[BatchWorkload, ...] = ()
    rent_pusd_per_hour: int | None = None


@dataclass(frozen=True, slots=True)
class ClassForecast:
    """Requests a second of one class, when an engine asked for now would serve: mean and band.

    The band holds four fifths of what is expected; what is outside of it counts in the mean as its
    ends. `horizon_s` says how far ahead that is.
    """

    name: str
    horizon_s: float
    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class FleetAlternative:
    """One number of engines, weighed: expected pico-USD over the plan's horizon.

    `rent_pusd` has the start-up and what is paid ahead in it, `api_pusd` is what then goes to APIs.
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
    """The earnings of one engine an hour over the horizon, beside its rent an hour.

    `value_pusd` is `None` where no price elsewhere is known.
    """

    place: int
    value_pusd: int | None
    rent_pusd: int


@dataclass(frozen=True, slots=True)
class ScalePlan:
    """The number of engines that a pool should have now, and why.

    `running` counts those that run or start. `stop` names the engines to drain, in that order;
    starts are `wanted` less what stays. `last` is the last engine that is wanted (`None` at zero),
    `next` the first that is not. `look_again_us` is when the plan should be made again.
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
    """The interface of `router.scaling.planner.FleetPlanner(terms)`.

    `observe` is told each window once, in order; `plan` changes nothing, so the same state gives
    the same plan. `memory` and `FleetPlanner.from_memory(terms, memory)` keep what was learned over
    a restart: a mapping that JSON holds.
    """

    def observe(self, window: ArrivalWindow) -> None: ...

    def plan(self, state: FleetState) -> ScalePlan: ...

    def memory(self) -> dict[str, object]: ...
