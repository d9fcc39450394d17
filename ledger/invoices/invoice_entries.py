"""The journal entries that posted invoices made, and what they tell of how each was posted.

Pure; money is in pico-USD. `books.post_invoice` writes one entry for each day that differs.
"""

import re
from collections.abc import Mapping
from datetime import date

_ENTRY = re.compile(r"invoice:(\d+):\d{4}-\d{2}-\d{2}$")


def invoice_entry(number: int, day: date) -> str:
    """Return the entry id under which an invoice's difference of a day is posted."""
    return f"invoice:{number}:{day}"


def invoice_of(entry: str) -> int | None:
    """Return the number of the invoice in such an entry id; None for any other entry."""
    match = _ENTRY.match(entry)
    return int(match[1]) if match else None


def is_added(lines: Mapping[int, int], posted: Mapping[int, int]) -> bool:
    """Return whether an invoice was posted as owed beside what the books had of its days.

    `lines` are the sums of its lines, `posted` is what its posting changed, by day since 1970. An
    invoice that was added changed each day by its lines. One that replaces changed each day by
    its lines less what the books had. Both are equal only where the books had nothing on any of
    its days: then what is owed after it is the same either way, and the answer is True.
    """
    days = lines.keys() | posted.keys()
    return all(lines.get(day, 0) == posted.get(day, 0) for day in days)
