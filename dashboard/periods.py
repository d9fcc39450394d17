"""Periods: recent hours and days, calendar months and quarters, and any days.

Days, months and quarters are in the reporting time zone. An unfinished period ends at the current
time. A calendar month has its own number of hours, which its verdict uses.
"""

from dataclasses import dataclass
from datetime import date, timedelta

from ledger.reporting_zone import ReportingZone
from ledger.spans import DAY_US, HOUR_US

THIS_MONTH, LAST_MONTH = "month", "last month"
THIS_QUARTER, LAST_QUARTER = "quarter", "last quarter"
DAYS = "days"  # from one day to another
CALENDAR = (THIS_MONTH, LAST_MONTH, THIS_QUARTER, LAST_QUARTER, DAYS)
MONTHS_OF_A_QUARTER = 3


@dataclass(frozen=True, slots=True)
class DatedPeriod:
    """A period with a fixed start.

    `words` completes a sentence that begins with "in". `month_hours` is the length of a calendar
    month, `None` for other periods. `earlier_us` is the start of the calendar month or quarter
    before one that is over, with its `earlier_words`.
    """

    start_us: int
    end_us: int
    words: str
    month_hours: int | None = None
    earlier_us: int | None = None
    earlier_words: str = ""

    @property
    def length_us(self) -> int:
        return self.end_us - self.start_us

    @property
    def before(self) -> "DatedPeriod":
        """Return the month or quarter before, else the equally long period that ends here."""
        if self.earlier_us is not None:
            return DatedPeriod(self.earlier_us, self.start_us, self.earlier_words)
        start_us = self.start_us - self.length_us
        return DatedPeriod(start_us, self.start_us, f"the {length_text(self.length_us)} before")


def dated_period(
    name: str, zone: ReportingZone, now_us: int, days: tuple[date, ...] = ()
) -> DatedPeriod | None:
    """Return a calendar period, or the days from the first to the last of `days`.

    Returns `None` if the name is not a calendar period, or if no day is chosen.
    """
    today = zone.date_of(now_us)
    if name == DAYS:
        return _days(zone, now_us, sorted(day for day in days if day <= today))
    if name not in CALENDAR:
        return None
    first = today.replace(day=1)
    if name in (THIS_QUARTER, LAST_QUARTER):
        first = first.replace(month=today.month - (today.month - 1) % MONTHS_OF_A_QUARTER)
    if name == LAST_MONTH:
        first = _months_later(first, -1)
    if name == LAST_QUARTER:
        first = _months_later(first, -MONTHS_OF_A_QUARTER)
    quarterly = name in (THIS_QUARTER, LAST_QUARTER)
    start_us = zone.midnight_us(first)
    end_us = zone.midnight_us(_months_later(first, MONTHS_OF_A_QUARTER if quarterly else 1))
    text, over = _name(first, quarterly=quarterly), end_us <= now_us
    earlier = _months_later(first, -MONTHS_OF_A_QUARTER if quarterly else -1)
    return DatedPeriod(
        start_us,
        _not_beyond(start_us, end_us, now_us),
        text if over else f"{text} so far",
        None if quarterly else (end_us - start_us) // HOUR_US,
        zone.midnight_us(earlier) if over else None,
        _name(earlier, quarterly=quarterly) if over else "",
    )


def length_text(length_us: int) -> str:
    """Return `14 days`, or hours for less than two days."""
    days = round(length_us / DAY_US)
    if days > 1:
        return f"{days} days"
    hours = max(1, round(length_us / HOUR_US))
    return "hour" if hours == 1 else f"{hours} hours"


def _days(zone: ReportingZone, now_us: int, days: list[date]) -> DatedPeriod | None:
    if not days:
        return None
    first, last = days[0], days[-1]
    start_us = zone.midnight_us(first)
    end_us = zone.midnight_us(last + timedelta(days=1))
    words = f"{first:%d %b %Y}" if first == last else f"{first:%d %b %Y} to {last:%d %b %Y}"
    if zone.month(start_us) != (start_us, end_us):
        return DatedPeriod(start_us, _not_beyond(start_us, end_us, now_us), words)
    earlier, over = _months_later(first, -1), end_us <= now_us
    return DatedPeriod(
        start_us,
        _not_beyond(start_us, end_us, now_us),
        words,
        (end_us - start_us) // HOUR_US,
        zone.midnight_us(earlier) if over else None,
        _name(earlier, quarterly=False) if over else "",
    )


def _name(first: date, *, quarterly: bool) -> str:
    if quarterly:
        return f"quarter {(first.month - 1) // MONTHS_OF_A_QUARTER + 1} of {first.year}"
    return f"{first:%B %Y}"


def _not_beyond(start_us: int, end_us: int, now_us: int) -> int:
    """Return the end, or the current time if earlier; a period lasts at least an hour."""
    return min(end_us, max(now_us, start_us + HOUR_US))


def _months_later(day: date, months: int) -> date:
    place = day.year * 12 + day.month - 1 + months
    return day.replace(year=place // 12, month=place % 12 + 1, day=1)
