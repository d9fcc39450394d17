"""Spend by day of the reporting calendar; the days add up to the period exactly.

API costs belong to the day in which their attempt was opened, GPU hours (closed ones and the open
rest) to the day in which the hour begins, ops costs to the hours in which they applied, and
adjustments to the end of the billed day.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from ledger.fleet.bills import BilledOps, billed_ops
from ledger.fleet.running import OpenHours, running
from ledger.invoices.adjusted import adjusted_by_day
from ledger.queries import reads as queries
from ledger.queries.reads import HourCell, TeamCell
from ledger.queries.rollups import SumQuery, sums
from ledger.reporting_zone import UTC_DAYS, ReportingZone, fold_days
from ledger.spans import DAY_US, HOUR_US, Scope
from ledger.sums.rollup import ATTEMPTS, LIMB


@dataclass(frozen=True, slots=True)
class DaySpend:
    """Spend of one day, or of the part of a day in the period: `start_us <= t < end_us`.

    `own_pusd` is the used part of own GPUs, `idle_pusd` their idle and unavailable part.
    `adjusted_pusd` is the difference to posted invoices, which is 0 for a team.
    """

    start_us: int
    end_us: int
    api_pusd: int
    own_pusd: int
    idle_pusd: int
    ops_pusd: int = 0
    adjusted_pusd: int = 0

    @property
    def total_pusd(self) -> int:
        return self.booked_pusd + self.adjusted_pusd

    @property
    def booked_pusd(self) -> int:
        """Return the total without adjustments, which days without an invoice lack."""
        return self.api_pusd + self.own_pusd + self.idle_pusd + self.ops_pusd


def spend_by_day(connection: Connection, scope: Scope, zone: ReportingZone) -> list[DaySpend]:
    """Return every day of the scope in order, including days without spend."""
    api, (used, idle, ops) = _apis(connection, scope, zone), _own(connection, scope, zone)
    adjusted = adjusted_by_day(connection, scope, zone)
    days = []
    for part in zone.days(scope):
        first = zone.day(part.start_us)[0]
        spent = (api.get(first, 0), used.get(first, 0), idle.get(first, 0))
        paid = sum(each.of_days(part.start_us, part.end_us) for each in ops)
        days.append(DaySpend(part.start_us, part.end_us, *spent, paid, adjusted.get(first, 0)))
    return days


def _apis(connection: Connection, scope: Scope, zone: ReportingZone) -> dict[int, int]:
    """Return API costs in pico-USD by the start of the day; UTC days take a single query."""
    in_buckets = zone == UTC_DAYS
    ask = SumQuery(("backend",), DAY_US if in_buckets else None, measures=("cost_high", "cost_low"))
    found: dict[int, int] = {}
    for part in [scope] if in_buckets else zone.days(scope):
        for (start_us, name), (high, low) in sums(connection, ATTEMPTS, part, ask).items():
            if name == "api":
                first = start_us if in_buckets else zone.day(part.start_us)[0]
                found[first] = found.get(first, 0) + high * LIMB + low
    return found


def _own(
    connection: Connection, scope: Scope, zone: ReportingZone
) -> tuple[dict[int, int], dict[int, int], Sequence[BilledOps]]:
    """Return used and unused pico-USD of own GPUs by the start of the day, and ops costs.

    For a team, only the used part is returned.
    """
    closed = queries.hours(connection, scope, bucket_us=HOUR_US)
    whole = replace(scope, team=None)
    contracts = queries.contracts(connection)
    rests = [running(connection, contract, closed, whole) for contract in contracts]
    if scope.team is not None:
        mine = queries.hours_by_team(connection, scope, bucket_us=HOUR_US)
        return _of_team(mine, rests, scope.team, zone), {}, ()
    used, idle = _closed(closed, zone)
    for rest in rests:
        for first, parts in fold_days(rest.parts, zone, lambda part: part.start_us).items():
            used[first] = used.get(first, 0) + sum(part.used_pusd for part in parts)
            lost = sum(part.idle_pusd + part.unavailable_pusd for part in parts)
            idle[first] = idle.get(first, 0) + lost
    versions = queries.contract_versions(connection)
    ops = [
        billed_ops(contract, closed, scope, rest, [
            version for version in versions if version.pool == contract.pool
        ])
        for contract, rest in zip(contracts, rests, strict=True)
        if contract.pusd_per_hour is not None
    ]  # fmt: skip
    return used, idle, ops


def _closed(
    closed: Sequence[HourCell], zone: ReportingZone
) -> tuple[dict[int, int], dict[int, int]]:
    days = fold_days(closed, zone, lambda cell: cell.start_us)
    return (
        {first: sum(cell.used_pusd for cell in cells) for first, cells in days.items()},
        {
            first: sum(cell.idle_pusd + cell.unavailable_pusd for cell in cells)
            for first, cells in days.items()
        },
    )


def _of_team(
    mine: Sequence[TeamCell], rests: Sequence[OpenHours], team: str, zone: ReportingZone
) -> dict[int, int]:
    """Return a team's used pico-USD by the start of the day.

    The open rest is known only as a whole, so it counts on the day in which it begins.
    """
    days = fold_days(mine, zone, lambda cell: cell.start_us)
    used = {first: sum(cell.used_pusd for cell in cells) for first, cells in days.items()}
    for rest in rests:
        if pusd := rest.used_pusd.get(team, 0):
            first = zone.day(rest.from_us)[0]
            used[first] = used.get(first, 0) + pusd
    return used
