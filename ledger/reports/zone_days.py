"""Sums by day of the reporting time zone, in the format of sums by bucket.

Buckets of the database begin at multiples of their width, so a day is a UTC day. In another zone
each day is read as a separate span: whole hours from the sums, the rest from rows.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace

from sqlalchemy import Connection

from ledger.queries import reads as queries
from ledger.queries.reads import HourCell, SpendPoint, TeamCell
from ledger.queries.rollups import RollupProgress
from ledger.reporting_zone import ReportingZone, fold_days
from ledger.reports.facts import BucketSums, moments
from ledger.spans import DAY_US, HOUR_US, Scope

_WHOLE_US = 10**6 * 7 * DAY_US  # longer than the books, and whole of every width of sums


def day_moments(
    connection: Connection, scope: Scope, here: RollupProgress | None, zone: ReportingZone
) -> list[BucketSums]:
    """Return `facts.moments` by days of this zone."""
    return [
        moment._replace(start_us=zone.day(day.start_us)[0])
        for day in zone.days(scope)
        for moment in moments(connection, day, here, bucket_us=_WHOLE_US)
    ]


def day_spent(
    connection: Connection,
    scope: Scope,
    zone: ReportingZone,
    read: Callable[[Connection, Scope, int], Iterable[SpendPoint]],
) -> list[SpendPoint]:
    """Return spend by days of this zone; the last argument of `read` is a bucket width."""
    if zone.name == "UTC":
        return list(read(connection, scope, DAY_US))
    return [
        replace(point, start_us=zone.day(day.start_us)[0])
        for day in zone.days(scope)
        for point in read(connection, day, _WHOLE_US)
    ]


def day_hours(connection: Connection, scope: Scope, zone: ReportingZone) -> list[HourCell]:
    """Return closed hours by pool and by the day in which they begin."""
    found = queries.hours(connection, scope, bucket_us=HOUR_US)
    return [
        _sum_hours(cells, first)
        for pool in dict.fromkeys(cell.pool for cell in found)
        for first, cells in fold_days(
            [cell for cell in found if cell.pool == pool], zone, lambda cell: cell.start_us
        ).items()
    ]


def day_team_hours(connection: Connection, scope: Scope, zone: ReportingZone) -> list[TeamCell]:
    """Return each team's part of closed hours by pool and day."""
    found: dict[tuple[str, int, str], int] = {}
    for cell in queries.hours_by_team(connection, scope, bucket_us=HOUR_US):
        key = cell.pool, zone.day(cell.start_us)[0], cell.team
        found[key] = found.get(key, 0) + cell.used_pusd
    return [TeamCell(*key, pusd) for key, pusd in sorted(found.items())]


def _sum_hours(cells: list[HourCell], start_us: int) -> HourCell:
    return HourCell(
        cells[0].pool,
        start_us,
        sum(cell.hours for cell in cells),
        sum(cell.span_us for cell in cells),
        sum(cell.bill_pusd for cell in cells),
        sum(cell.used_pusd for cell in cells),
        sum(cell.idle_pusd for cell in cells),
        sum(cell.unavailable_pusd for cell in cells),
        sum(cell.busy_us for cell in cells),
        sum(cell.unavailable_us for cell in cells),
        sum(cell.replica_us for cell in cells),
        max(cell.last_hour_us for cell in cells),
    )
