"""The number of engines that a day's rent limit allows: pure."""

from collections.abc import Iterable

from ledger.economics.scaling_score import InstanceRent
from ledger.fleet.fleet_records import FleetInstance


def spent_pusd(instances: Iterable[FleetInstance], day: tuple[int, int]) -> int:
    """Return the rent of a day if every engine that runs goes on to its end."""
    return sum(instance.rent_pusd(*day) for instance in instances)


def starts_left(
    instances: Iterable[FleetInstance],
    rent: InstanceRent,
    limit_pusd: int | None,
    *,
    day: tuple[int, int],
    now_us: int,
) -> int | None:
    """Return how many engines may be started now; `None` without a limit.

    A start counts with its rent until the day's end: a plan that would stop it sooner is not
    relied on.
    """
    if limit_pusd is None:
        return None
    each = max(1, rent.bill_pusd(now_us, day[1]))
    return max(0, (limit_pusd - spent_pusd(instances, day)) // each)
