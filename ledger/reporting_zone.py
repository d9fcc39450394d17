"""The time zone of an organisation's days and months: one for pages, exports and reports.

The books have instants. A day of this zone is 23 to 25 hours long where clocks change, and days
that follow each other leave nothing out and share nothing: what is added up by day adds up to the
period. A GPU's hour is billed whole and belongs to the day in which it begins, also where the
zone is half an hour beside UTC. The configuration declares the zone (`timezone`), and the books
keep it, so that a reader of the books alone, as the dashboard, has the same days.
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
    """`name`: IANA's. Days and months are half-open, in microseconds since the epoch."""

    name: str = "UTC"

    def day(self, at_us: int) -> tuple[int, int]:
        """Return the day that holds the instant."""
        return _span_us("day", self.name, at_us // HOUR_US * 3600 + _quarter_s(at_us))

    def month(self, at_us: int) -> tuple[int, int]:
        """Return the calendar month that holds the instant."""
        return _span_us("month", self.name, self.day(at_us)[0] // _US)

    def midnight_us(self, day: date) -> int:
        """Return the first instant of a date."""
        at = datetime(day.year, day.month, day.day, 12, tzinfo=zone_named(self.name))
        return self.day(int(at.timestamp()) * _US)[0]

    def month_named(self, text: str) -> tuple[int, int]:
        """Return the month of `2026-11`; raises `ValueError` for what is none."""
        if len(text) != len("2026-11"):
            raise ValueError(f"`{text}` is no month: write it as 2026-11")
        try:
            return self.month(self.midnight_us(date.fromisoformat(f"{text}-01")))
        except ValueError:
            raise ValueError(f"`{text}` is no month: write it as 2026-11") from None

    def date_of(self, at_us: int) -> date:
        return datetime.fromtimestamp(at_us // _US, zone_named(self.name)).date()

    def days(self, scope: Scope) -> Iterator[Scope]:
        """Yield the scope cut at this zone's midnights; the first and last may be parts of days."""
        start_us = scope.start_us
        while start_us < scope.end_us:
            end_us = min(scope.end_us, self.day(start_us)[1])
            yield replace(scope, start_us=start_us, end_us=end_us)
            start_us = end_us


UTC_DAYS = ReportingZone()


def _quarter_s(at_us: int) -> int:
    """Seconds since the full hour, to the quarter: no zone's midnight is at any other instant."""
    return at_us % HOUR_US // (HOUR_US // 4) * 900


def reporting_zone(connection: Connection) -> ReportingZone:
    """Return the zone that the books keep; UTC where none was declared."""
    found = entries_in_force(entries(connection, REPORTING), 2**62).get(_NAME)
    return UTC_DAYS if found is None or found.says is None else ReportingZone(found.says["zone"])


def declare_zone(connection: Connection, name: str, at_us: int) -> None:
    """Keep the zone of the configuration; what is said already is not said again."""
    if name != reporting_zone(connection).name:
        says = {"zone": name}
        enter(connection, ManualEntry(0, REPORTING + _NAME, says, at_us, at_us, "configuration"))


def fold_days(
    items: Iterable[Item], zone: ReportingZone, start_of: Callable[[Item], int]
) -> dict[int, list[Item]]:
    """Return the items by the first instant of their day, in time order."""
    found: dict[int, list[Item]] = {}
    for item in sorted(items, key=start_of):
        found.setdefault(zone.day(start_of(item))[0], []).append(item)
    return found
