"""Days of a provider's bills, which may start at another hour than UTC days.

A provider may count days in its own time zone, and a bill has only dates. Each imported invoice
keeps the offset of its provider at that time, so posted amounts do not change later. Days are
numbers since 1970. For a zone with clock changes, the offset is wrong by one hour for half of the
year.
"""

from typing import Any

from sqlalchemy import ColumnElement, literal_column

from ledger.spans import DAY_US

MINUTE_US = 60 * 1_000_000
LEAST_MINUTES, MOST_MINUTES = -12 * 60, 14 * 60  # of any time zone


def offset_minutes(text: str) -> int:
    """Return the minutes by which a zone such as `-08:00` is ahead of UTC.

    Raises `ValueError` for other texts.
    """
    sign, hours, minutes = text[:1], text[1:3], text[4:]
    digits = hours.isascii() and minutes.isascii() and (hours + minutes).isdigit()
    if len(text) == 6 and sign in ("+", "-") and text[3] == ":" and digits and int(minutes) < 60:
        ahead = (-1 if sign == "-" else 1) * (60 * int(hours) + int(minutes))
        if LEAST_MINUTES <= ahead <= MOST_MINUTES:
            return ahead
    raise ValueError(
        f"`{text}` is not an offset from UTC: write it as +08:00, within -12:00 and +14:00"
    )


def offset_text(offset_min: int) -> str:
    """Return the zone as text: `UTC`, `UTC-08:00`."""
    hours, minutes = divmod(abs(offset_min), 60)
    sign = "-" if offset_min < 0 else "+"
    return f"UTC{sign}{hours:02}:{minutes:02}" if offset_min else "UTC"


def billing_day(at_us: int, offset_min: int) -> int:
    """Return the billing day of a time."""
    return (at_us + offset_min * MINUTE_US) // DAY_US


def day_start_us(day: int, offset_min: int) -> int:
    """Return the time at which a billing day starts, in microseconds."""
    return day * DAY_US - offset_min * MINUTE_US


def day_column(instant: Any, offset_min: int) -> ColumnElement[int]:
    """Return the SQL expression for the billing day of a column of times."""
    ahead_us: ColumnElement[int] = literal_column(str(offset_min * MINUTE_US))
    day_us: ColumnElement[int] = literal_column(str(DAY_US))
    moved = instant + ahead_us if offset_min else instant
    # Without a precedence above the sum's, the quotient would be taken first.
    shifted: ColumnElement[int] = moved.op("/", precedence=8)(day_us)
    return shifted
