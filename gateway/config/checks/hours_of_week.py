"""Which minutes of the week the hours of policies have, and whether some have all of others'.

Minutes are those of a zone's own clock, so hours of one zone add up whatever its changes of clocks.
What two zones have together is not compared: only hours of one zone cover hours.
"""

from collections.abc import Iterable, Sequence

from gateway.config.schema_policies import TimesSection
from router.hours import DAYS, minute_of

DAY_MINUTES = 24 * 60
WEEK_MINUTES = 7 * DAY_MINUTES


def covers_hours(upper: Iterable[TimesSection], lower: Sequence[TimesSection]) -> bool:
    """Whether the upper hours together hold wherever the lower ones do; no lower ones: always."""
    by_zone: dict[str, set[int]] = {}
    for times in upper:
        by_zone.setdefault(times.timezone, set()).update(minutes_of(times))
    if any(len(minutes) == WEEK_MINUTES for minutes in by_zone.values()):
        return True
    return bool(lower) and all(
        minutes_of(times) <= by_zone.get(times.timezone, set()) for times in lower
    )


def minutes_of(times: TimesSection) -> set[int]:
    """Return the minutes of a week, from Monday's midnight; an end not after its start is later."""
    starts, ends = minute_of(times.starts), minute_of(times.ends)
    length = ends - starts if ends > starts else ends - starts + DAY_MINUTES
    days = [DAYS.index(day) for day in times.days or DAYS]
    return {
        (day * DAY_MINUTES + starts + minute) % WEEK_MINUTES
        for day in days
        for minute in range(length)
    }
