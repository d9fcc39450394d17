"""A strict parser of timestamps in files of other systems. Ambiguous texts are refused.

The formats are those of billing exports: `2026-11-01` (midnight), `2026-11-01T00:00Z` (Azure, OCI),
`2026-11-01T00:00:00.000000000z` (AWS), `2026-11-01 00:00:00.000 +0100` (Snowflake; also +01:00 and
+01), `2026-11-01 00:00:00 UTC` (BigQuery), `2026-11-01 00:00:00 +0000 UTC` (programs in Go).
Without an offset the time is UTC, as in FOCUS. Day and month in a national order, names of time
zones and bare numbers are refused, with the fix.
"""

import re
from datetime import date

US_PER_S = 1_000_000
DAY_US = 86_400 * US_PER_S
EXAMPLES = "write 2026-11-01, 2026-11-01T00:00:00Z or 2026-11-01T00:00:00+01:00"
_EPOCH_DAY = date(1970, 1, 1).toordinal()
_FIRST_US = (date.min.toordinal() - _EPOCH_DAY) * DAY_US
_END_US = (date.max.toordinal() + 1 - _EPOCH_DAY) * DAY_US
_FARTHEST_MINUTES = 18 * 60  # of an offset; real ones are at most 14 hours
_INSTANT = re.compile(
    r"(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[Tt ](?P<hour>[0-9]{2})"
    r"(?::(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:[.,](?P<fraction>[0-9]{1,9}))?)?)?"
    r" ?(?:(?P<sign>[+-])(?P<off_hour>[0-9]{2}):?(?P<off_minute>[0-9]{2})?)?"
    r"(?P<zone> ?(?:Z|UTC|GMT|Etc/UTC|Z?\[UTC\]))?)?",
    re.IGNORECASE,
)
_OTHER_ORDER = re.compile(r"[0-9]{1,4}[/.][0-9]{1,2}[/.][0-9]{1,4}\b.*|[0-9]{1,2}-[0-9]{1,2}-.+")
_YEAR_LAST = re.compile(r"([0-9]{1,2})([/.-])([0-9]{1,2})\2[0-9]{4}\b.*")
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?")
_ZONE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9:.,]+ ?\[?[A-Za-z][A-Za-z_/+-]+.*")


class InstantError(ValueError):
    """A text that is not a timestamp; the message quotes it and gives the expected form."""


def instant_us(text: str) -> int:
    """Return microseconds since the epoch; finer digits are cut. Raises `InstantError`."""
    said = text.strip()
    match = _INSTANT.fullmatch(said)
    if match is None:
        raise InstantError(f"{text!r} is not a date: {_fix(said)}")
    try:
        day = day_number(date.fromisoformat(match["day"]))
    except ValueError:
        raise InstantError(f"{text!r} is not a date: the calendar has no such day") from None
    hour, minute, second = (int(match[name] or 0) for name in ("hour", "minute", "second"))
    fraction_us = int((match["fraction"] or "").ljust(6, "0")[:6])
    within_us = ((hour * 60 + minute) * 60 + second) * US_PER_S + fraction_us
    # The end of a day may be 24:00. A second 60 is refused: the ledger has no leap seconds.
    if minute > 59 or second > 59 or within_us > DAY_US or (hour == 24 and within_us != DAY_US):
        raise InstantError(f"{text!r} is not a date: the day has no such time")
    offset_minutes = int(match["off_hour"] or 0) * 60 + int(match["off_minute"] or 0)
    if int(match["off_minute"] or 0) > 59 or offset_minutes > _FARTHEST_MINUTES:
        raise InstantError(f"{text!r} is not a date: no zone has such an offset")
    if offset_minutes and match["zone"]:
        raise InstantError(f"{text!r} is not a date: it has an offset, and says UTC")
    ahead = -offset_minutes if match["sign"] == "-" else offset_minutes
    at_us = day * DAY_US + within_us - ahead * 60 * US_PER_S
    if not _FIRST_US <= at_us < _END_US:
        raise InstantError(f"{text!r} is not a date: in UTC it is outside of the years 1 to 9999")
    return at_us


def day_of(at_us: int) -> date:
    """Return the UTC day of a time in microseconds since the epoch."""
    return date_of(at_us // DAY_US)


def day_number(day: date) -> int:
    """Return the number of days from 1970-01-01 to this day, equal to `at_us // DAY_US`."""
    return day.toordinal() - _EPOCH_DAY


def date_of(number: int) -> date:
    """Return the date of a day number."""
    return date.fromordinal(number + _EPOCH_DAY)


def time_in_days(start_us: int, end_us: int) -> list[tuple[date, int]]:
    """Return the UTC days of `[start_us, end_us)`, each with its microseconds in the span.

    A span of length 0 or less counts as 1 microsecond on the day of its start.
    """
    if end_us <= start_us:
        return [(day_of(start_us), 1)]
    first, last = start_us // DAY_US, (end_us - 1) // DAY_US
    return [
        (
            day_of(day * DAY_US),
            min(end_us, (day + 1) * DAY_US) - max(start_us, day * DAY_US),
        )
        for day in range(first, last + 1)
    ]


def _fix(said: str) -> str:
    if not said:
        return f"it is empty; {EXAMPLES}"
    if _OTHER_ORDER.fullmatch(said):
        if _has_one_reading(said):
            return f"its day and month stand in an order of a country's own; {EXAMPLES}"
        return f"its day and month may be meant either way; {EXAMPLES}"
    if _NUMBER.fullmatch(said):
        return f"a bare number has no unit; {EXAMPLES}"
    if _ZONE.fullmatch(said):
        return "it names a zone: write UTC or an offset, as in 2026-11-01T00:00:00+01:00"
    return EXAMPLES


def _has_one_reading(said: str) -> bool:
    """Return whether exactly one of the two numbers before a year is too large for a month."""
    match = _YEAR_LAST.fullmatch(said)
    return match is not None and (int(match[1]) > 12) != (int(match[3]) > 12)
