"""Calendar windows of budgets: days or months in a time zone.

A window starts at local midnight and is half-open, so every time lies in exactly one window. A day
is 23 to 25 hours long when clocks change. If midnight is skipped, the window starts at the first
instant of that date.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final, Literal, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

Period = Literal["day", "month"]
LATE_S = 3600
_NO_PLACE: Final = frozenset(("Factory", "localtime", "posixrules"))
_OTHER_CLOCKS: Final = ("posix/", "right/")


class WindowError(ValueError):
    """An unknown period or time zone."""


@dataclass(frozen=True, slots=True)
class CalendarWindow:
    """A window with `start_s <= t < end_s` in epoch seconds. `start_s` identifies it in rows."""

    start_s: int
    end_s: int


def window_at(period: Period, timezone: str, at_s: int) -> CalendarWindow:
    """Return the calendar window that contains `at_s`. Raises `WindowError`."""
    zone = zone_named(timezone)
    today = datetime.fromtimestamp(at_s, tz=zone).date()
    if period == "day":
        first, following = today, today + timedelta(days=1)
    elif period == "month":
        first = today.replace(day=1)
        following = (first + timedelta(days=31)).replace(day=1)
    else:
        raise WindowError(f"`{period}` is not a budget period: day, month")
    return CalendarWindow(_midnight_s(first, zone), _midnight_s(following, zone))


def starts_around(calendars: Iterable[tuple[str, str]], at_s: int) -> set[int]:
    """Return the starts of the windows at a time and `LATE_S` before: hosts' clocks differ.

    A calendar is the (period, time zone) of a declared budget.
    """
    return {
        window_at(cast("Period", period), timezone, moment_s).start_s
        for period, timezone in calendars
        for moment_s in (at_s, at_s - LATE_S)
    }


def zone_named(timezone: str) -> tzinfo:
    """Return the time zone. Raises `WindowError` for an unknown name.

    UTC works without a zone database, which slim systems lack.
    """
    if timezone == "UTC":
        return UTC
    try:
        return ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise WindowError(f"`{timezone}` is not an IANA time zone known here") from error


def zone_stated(timezone: str) -> tzinfo:
    """Return the zone of a new setting. Raises `WindowError` also for names of no one place.

    `localtime` is another zone on each machine, so two hosts would count in different windows;
    `Factory` is no zone yet, and `right/` counts leap seconds. Zones in ledgers stay readable.
    """
    if timezone in _NO_PLACE or timezone.startswith(_OTHER_CLOCKS):
        words = "is no zone of a place: write an IANA zone such as Europe/Berlin"
        raise WindowError(f"`{timezone}` {words}, or UTC")
    return zone_named(timezone)


def zone_spelled(timezone: str) -> str:
    """Return the zone's IANA spelling, or the text itself if no zone has that name."""
    wanted = timezone.strip()
    try:
        zone_named(wanted)
    except WindowError:
        names = {"utc": "UTC"} if wanted.lower() == "utc" else _zones()
        return names.get(wanted.lower(), wanted)
    return wanted


def _zones() -> dict[str, str]:
    return {name.lower(): name for name in available_timezones()}


def _midnight_s(day: date, zone: tzinfo) -> int:
    # In a gap, fold=0 uses the offset before it, which gives the instant of the jump.
    return int(datetime(day.year, day.month, day.day, tzinfo=zone, fold=0).timestamp())
