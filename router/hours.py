"""Weekly hours in a local time zone, during which a rule of the policy file is active.

A window belongs to the days on which it begins: `fri 22:00 to 06:00` ends on Saturday morning. The
local clock decides: an hour that a clock change skips does not occur, and a repeated hour counts
twice.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
DAY_MINUTES = 24 * 60
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class WeeklyHours:
    """A window from `starts` to before `ends`, in minutes after midnight.

    With `ends <= starts` the window ends on the next day. `days` are numbered as by
    `datetime.weekday`; empty means all.
    """

    starts: int
    ends: int
    zone: tzinfo = UTC
    days: frozenset[int] = frozenset()

    def is_active(self, wall_us: int) -> bool:
        """Return whether the local time of `wall_us` (since the epoch) is in the window."""
        local = datetime.fromtimestamp(wall_us // 1_000_000, UTC).astimezone(self.zone)
        minute = 60 * local.hour + local.minute
        if self.starts < self.ends:
            return self.starts <= minute < self.ends and self._begun(local)
        if minute >= self.starts:
            return self._begun(local)
        return minute < self.ends and self._begun(local - _DAY)

    def _begun(self, day: datetime) -> bool:
        return not self.days or day.weekday() in self.days


class RuleCalendar:
    """Several windows of one rule, evaluated once a minute: zone offsets are whole minutes."""

    __slots__ = ("_holds", "_hours", "_minute")

    def __init__(self, hours: Iterable[WeeklyHours]) -> None:
        self._hours = tuple(hours)
        self._minute = -1
        self._holds = False

    def is_active(self, wall_us: int) -> bool:
        """Return whether any window is active; always true without windows."""
        minute = wall_us // 60_000_000
        if minute != self._minute:
            self._holds = not self._hours or any(hour.is_active(wall_us) for hour in self._hours)
            self._minute = minute
        return self._holds


def minute_of(text: str) -> int:
    """Return minutes after midnight of `22:30`, at most `24:00`. Raises `ValueError`."""
    hours, colon, minutes = text.partition(":")
    if not (colon and len(hours) == len(minutes) == 2 and (hours + minutes).isdecimal()):
        raise ValueError(text)
    minute = 60 * int(hours) + int(minutes)
    if int(minutes) > 59 or minute > DAY_MINUTES:
        raise ValueError(text)
    return minute
