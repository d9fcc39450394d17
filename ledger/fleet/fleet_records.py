"""Values of pools that size themselves, as stored in the ledger."""

from dataclasses import dataclass
from typing import Any

from ledger.economics.scaling_score import InstanceRent


@dataclass(frozen=True, slots=True)
class FleetInstance:
    """One engine that was requested, or that appeared without a request (`owned` is false).

    `gone_us` is the end of its rent. A row without `gone_us` costs money.
    """

    token: str
    pool: str
    place: int | None
    owned: bool
    rent: InstanceRent
    asked_us: int
    name: str | None = None
    seen_us: int | None = None
    ready_us: int | None = None
    stop_us: int | None = None
    told_us: int | None = None
    gone_us: int | None = None

    def rent_pusd(self, start_us: int, end_us: int) -> int:
        """Return the rent that becomes due between two times."""
        until_us = end_us if self.gone_us is None else min(end_us, self.gone_us)
        return max(0, self.rent.part_pusd(self.asked_us, start_us, until_us))

    @property
    def is_live(self) -> bool:
        """Return whether a plan counts on the instance."""
        return self.owned and self.stop_us is None and self.gone_us is None


@dataclass(frozen=True, slots=True)
class FleetChange:
    """One start or stop that a plan decided."""

    pool: str
    at_us: int
    mode: str
    verb: str
    token: str | None
    engines: int
    reason: str
    sentence: str
    expected_pusd: int | None
    until_us: int
    fence: int = 0
    id: int = 0
    realised_pusd: int = 0
    done_us: int | None = None
    outcome: str | None = None
    detail: str | None = None


@dataclass(frozen=True, slots=True)
class FleetPlanRecord:
    """A stored plan. `document` has the forecast, the alternatives and their worth."""

    pool: str
    at_us: int
    mode: str
    wanted: int
    running: int
    reason: str
    sentence: str
    document: dict[str, Any]


@dataclass(frozen=True, slots=True)
class PlannerMemory:
    """The state of a planner. `advised` are the engines that its advice would have by now."""

    through_us: int
    memory: dict[str, Any]
    advised: list[dict[str, Any]]
