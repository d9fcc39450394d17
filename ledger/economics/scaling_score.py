"""The cost that each number of engines would have had in a window, to score scaling plans.

`api_curve` prices the work that a number of engines cannot hold, as the planner values it: work
that may not leave is served first, then work that avoids most dollars per second of engine time.
Curves of windows are added element by element, so hours and days have curves too. Rent is a running
total from the request for an instance on, so the parts of its life add up to its bill. All amounts
are exact.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ledger.money import PPM, divide_half_even

US = 1_000_000
HOUR_US = 3_600 * US


@dataclass(frozen=True, slots=True)
class InstanceRent:
    """The rent of an engine: whole units of `unit_s`, at least `least_s`, from its request on."""

    pusd_per_hour: int
    unit_s: int = 1
    least_s: int = 0

    def bill_pusd(self, asked_us: int, until_us: int) -> int:
        """Return the amount due at `until_us` for an engine requested at `asked_us`.

        The current unit is due in full.
        """
        if until_us <= asked_us:
            return 0
        unit_us = self.unit_s * US
        units = -(-max(until_us - asked_us, self.least_s * US) // unit_us)
        return divide_half_even(self.pusd_per_hour * units * unit_us, HOUR_US)

    def part_pusd(self, asked_us: int, start_us: int, end_us: int) -> int:
        """Return the amount that becomes due between two times."""
        return self.bill_pusd(asked_us, end_us) - self.bill_pusd(asked_us, start_us)


@dataclass(frozen=True, slots=True)
class ServedClass:
    """Requests of one class in a window. `pusd_per_request` is `None` if unknown.

    `running_ppm` is the work that ran in the window, in millionths of a request. `None` counts all
    work of a request in the window of its arrival.
    """

    name: str
    requests: int
    engine_us: int
    pusd_per_request: int | None
    movable: bool = True
    running_ppm: int | None = None

    @property
    def leaves(self) -> bool:
        return self.movable and self.pusd_per_request is not None

    @property
    def work_us(self) -> int:
        return self._times(self.engine_us)

    @property
    def pusd(self) -> int:
        return self._times(self.pusd_per_request or 0)

    def _times(self, amount: int) -> int:
        if self.running_ppm is None:
            return self.requests * amount
        return divide_half_even(self.running_ppm * amount, PPM)


def api_curve(
    classes: Iterable[ServedClass], *, length_us: int, capacity_ppm: int, most: int
) -> list[int]:
    """Return the API cost of a window for 0 to `most` engines, in pico-USD."""
    counted = [item for item in classes if item.work_us]
    fixed_us = sum(item.work_us for item in counted if not item.leaves)
    leaving = sorted(
        (item for item in counted if item.leaves),
        key=lambda item: (-Fraction(item.pusd, max(1, item.work_us)), item.name),
    )
    found = []
    for engines in range(most + 1):
        spare_us = max(0, engines * length_us * capacity_ppm // US - fixed_us)
        bought = 0
        for item in leaving:
            kept_us = min(spare_us, item.work_us)
            spare_us -= kept_us
            bought += divide_half_even(
                item.pusd * (item.work_us - kept_us), max(1, item.work_us)
            ) if item.work_us else 0  # fmt: skip
        found.append(bought)
    return found


def least_engines(classes: Iterable[ServedClass], *, length_us: int, capacity_ppm: int) -> int:
    """Return the number of engines that hold the work that may not leave."""
    fixed_us = sum(item.work_us for item in classes if not item.leaves)
    return -(-fixed_us * US // max(1, length_us * capacity_ppm))


def add_curves(before: Sequence[int], more: Sequence[int]) -> list[int]:
    """Return the sum, element by element. A shorter curve is extended by its last element."""
    length = max(len(before), len(more))
    return [
        (before[min(place, len(before) - 1)] if before else 0)
        + (more[min(place, len(more) - 1)] if more else 0)
        for place in range(length)
    ]


def at(curve: Sequence[int], engines: int) -> int:
    """Return the API cost at a number of engines; above the curve's length, its last element."""
    return curve[max(0, min(engines, len(curve) - 1))] if curve else 0


def marginal_pusd(curve: Sequence[int], place: int) -> int:
    """Return the API cost that the engine at this place (from 1) avoids."""
    return at(curve, place - 1) - at(curve, place)


@dataclass(frozen=True, slots=True)
class PlanSum:
    """Rent and API cost of one way to run a pool."""

    rent_pusd: int = 0
    api_pusd: int = 0

    @property
    def total_pusd(self) -> int:
        return self.rent_pusd + self.api_pusd

    def __add__(self, other: "PlanSum") -> "PlanSum":
        return PlanSum(self.rent_pusd + other.rent_pusd, self.api_pusd + other.api_pusd)


@dataclass(frozen=True, slots=True)
class ScoredSpan:
    """A scored span of time: the fleet that ran, the advised one, and every constant number.

    `one_rent_pusd` is one engine's rent over the span. `least` engines hold the work that may not
    leave. `covered_us` is the observed time; unobserved time is in no sum.
    """

    start_us: int
    covered_us: int
    requests: int
    ran: PlanSum
    advised: PlanSum
    curve: tuple[int, ...]
    one_rent_pusd: int
    least: int
    fixed_engines: int

    def fixed(self, engines: int) -> PlanSum:
        return PlanSum(engines * self.one_rent_pusd, at(self.curve, engines))

    @property
    def as_configured(self) -> PlanSum:
        """Return the cost of the fleet without scaling."""
        return self.fixed(self.fixed_engines)

    @property
    def all_api(self) -> PlanSum:
        return self.fixed(0)

    @property
    def best_fixed(self) -> tuple[int, PlanSum]:
        """Return the cheapest constant number of engines and its cost, known in hindsight."""
        allowed = range(min(self.least, max(0, len(self.curve) - 1)), max(1, len(self.curve)))
        best = min(allowed, key=lambda engines: (self.fixed(engines).total_pusd, engines))
        return best, self.fixed(best)

    def __add__(self, other: "ScoredSpan") -> "ScoredSpan":
        later = self if self.start_us > other.start_us else other
        return ScoredSpan(
            start_us=min(self.start_us, other.start_us),
            covered_us=self.covered_us + other.covered_us,
            requests=self.requests + other.requests,
            ran=self.ran + other.ran,
            advised=self.advised + other.advised,
            curve=tuple(add_curves(self.curve, other.curve)),
            one_rent_pusd=self.one_rent_pusd + other.one_rent_pusd,
            least=max(self.least, other.least),
            fixed_engines=later.fixed_engines,
        )
