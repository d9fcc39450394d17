"""Number of engines that a daily rent limit allows. No I/O."""

from collections.abc import Iterable

from ledger.economics.scaling_score import InstanceRent
from ledger.fleet.fleet_records import FleetInstance


def spent_pusd(instances: Iterable[FleetInstance], day: tuple[int, int]) -> int:
    """Return a day's rent if all running engines continue until its end."""
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

    A start counts with its rent until the end of the day, because an earlier stop is not certain.
    """
    if limit_pusd is None:
        return None
    each = max(1, rent.bill_pusd(now_us, day[1]))
    return max(0, (limit_pusd - spent_pusd(instances, day)) // each)
