"""The journal entries of posted invoices, which show how each invoice was posted.

Money is pico-USD. `books.post_invoice` writes one entry for each day that differs.
"""

import re
from collections.abc import Mapping
from datetime import date

_ENTRY = re.compile(r"invoice:(\d+):\d{4}-\d{2}-\d{2}$")


def invoice_entry(number: int, day: date) -> str:
    """Return the entry id for an invoice's difference on a day."""
    return f"invoice:{number}:{day}"


def invoice_of(entry: str) -> int | None:
    """Return the invoice number in such an entry id, `None` for other ids."""
    match = _ENTRY.match(entry)
    return int(match[1]) if match else None


def is_added(lines: Mapping[int, int], posted: Mapping[int, int]) -> bool:
    """Return whether an invoice was posted in addition to the bookings of its days.

    `lines` are the sums of its lines, `posted` the changes of its posting, by day since 1970. An
    invoice that was added changed each day by its lines. One that replaces changed each day by its
    lines minus the bookings. Both are equal only if its days had no bookings: then the debt is the
    same either way, and the result is true.
    """
    days = lines.keys() | posted.keys()
    return all(lines.get(day, 0) == posted.get(day, 0) for day in days)
