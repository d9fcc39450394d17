"""Minutes of the week that policies' hours cover, and whether some hours cover others.

Minutes are local times of a zone, so hours of one zone combine whatever its daylight saving. Hours
of different zones are not compared.
"""

from collections.abc import Iterable, Sequence

from gateway.config.schema_policies import TimesSection
from router.hours import DAYS, minute_of

DAY_MINUTES = 24 * 60
WEEK_MINUTES = 7 * DAY_MINUTES


def covers_hours(upper: Iterable[TimesSection], lower: Sequence[TimesSection]) -> bool:
    """Return whether the upper hours cover all lower ones; true without lower hours."""
    by_zone: dict[str, set[int]] = {}
    for times in upper:
        by_zone.setdefault(times.timezone, set()).update(minutes_of(times))
    if any(len(minutes) == WEEK_MINUTES for minutes in by_zone.values()):
        return True
    return bool(lower) and all(
        minutes_of(times) <= by_zone.get(times.timezone, set()) for times in lower
    )


def minutes_of(times: TimesSection) -> set[int]:
    """Return the minutes of a week, counted from Monday midnight.

    A window whose end is not after its start ends on the next day.
    """
    starts, ends = minute_of(times.starts), minute_of(times.ends)
    length = ends - starts if ends > starts else ends - starts + DAY_MINUTES
    days = [DAYS.index(day) for day in times.days or DAYS]
    return {
        (day * DAY_MINUTES + starts + minute) % WEEK_MINUTES
        for day in days
        for minute in range(length)
    }
