"""The time zone of an organisation's days and months, one for pages, exports and reports.

The ledger stores UTC timestamps. A day of the zone has 23 to 25 hours where clocks change. Days do
not overlap and leave no gap, so sums by day add up to the sum of the period. A GPU hour is billed
whole and belongs to the day in which it begins, even in zones that are offset by half an hour. The
configuration sets the zone (`timezone`). The ledger stores it for readers without the
configuration, such as the dashboard.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import lru_cache
from typing import TypeVar

from sqlalchemy import Connection

from ledger.budgets.windows import Period, window_at, zone_named
from ledger.manual_entries import ManualEntry, enter, entries, entries_in_force
from ledger.spans import HOUR_US, Scope

REPORTING = "reporting:"
_NAME = "timezone"
_US = 10**6
Item = TypeVar("Item")


@lru_cache(maxsize=4096)
def _span_us(period: Period, name: str, at_s: int) -> tuple[int, int]:
    window = window_at(period, name, at_s)
    return window.start_s * _US, window.end_s * _US


@dataclass(frozen=True, slots=True)
class ReportingZone:
    """A time zone by IANA name. Its days and months are half-open spans of epoch microseconds."""

    name: str = "UTC"

    def day(self, at_us: int) -> tuple[int, int]:
        """Return start and end of the day that contains `at_us`."""
        return _span_us("day", self.name, at_us // HOUR_US * 3600 + _quarter_s(at_us))

    def month(self, at_us: int) -> tuple[int, int]:
        """Return start and end of the calendar month that contains `at_us`."""
        return _span_us("month", self.name, self.day(at_us)[0] // _US)

    def midnight_us(self, day: date) -> int:
        """Return the first microsecond of a date."""
        at = datetime(day.year, day.month, day.day, 12, tzinfo=zone_named(self.name))
        return self.day(int(at.timestamp()) * _US)[0]

    def month_named(self, text: str) -> tuple[int, int]:
        """Return start and end of a month such as `2026-11`. Raises `ValueError` if invalid."""
        if len(text) != len("2026-11"):
            raise ValueError(f"`{text}` is not a month: write it as 2026-11")
        try:
            return self.month(self.midnight_us(date.fromisoformat(f"{text}-01")))
        except ValueError:
            raise ValueError(f"`{text}` is not a month: write it as 2026-11") from None

    def date_of(self, at_us: int) -> date:
        return datetime.fromtimestamp(at_us // _US, zone_named(self.name)).date()

    def days(self, scope: Scope) -> Iterator[Scope]:
        """Yield the scope cut at this zone's midnights; the first and last may be partial days."""
        start_us = scope.start_us
        while start_us < scope.end_us:
            end_us = min(scope.end_us, self.day(start_us)[1])
            yield replace(scope, start_us=start_us, end_us=end_us)
            start_us = end_us


UTC_DAYS = ReportingZone()


def _quarter_s(at_us: int) -> int:
    """Return the seconds since the full hour, cut to 15 minutes, where all midnights fall."""
    return at_us % HOUR_US // (HOUR_US // 4) * 900


def reporting_zone(connection: Connection) -> ReportingZone:
    """Return the stored zone, UTC if none was declared."""
    found = entries_in_force(entries(connection, REPORTING), 2**62).get(_NAME)
    return UTC_DAYS if found is None or found.says is None else ReportingZone(found.says["zone"])


def declare_zone(connection: Connection, name: str, at_us: int) -> None:
    """Store the zone of the configuration if it differs from the stored one."""
    if name != reporting_zone(connection).name:
        says = {"zone": name}
        enter(connection, ManualEntry(0, REPORTING + _NAME, says, at_us, at_us, "configuration"))


def fold_days(
    items: Iterable[Item], zone: ReportingZone, start_of: Callable[[Item], int]
) -> dict[int, list[Item]]:
    """Return the items grouped by the first microsecond of their day, in time order."""
    found: dict[int, list[Item]] = {}
    for item in sorted(items, key=start_of):
        found.setdefault(zone.day(start_of(item))[0], []).append(item)
    return found
