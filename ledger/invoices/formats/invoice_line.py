"""The plain line to which every invoice format is converted."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class InvoiceLine:
    """The cost of one item on one day. `quantity` counts `unit`s (tokens, hours), if stated.

    `charge` is the number of its charge in the file; `None` for formats without charges for several
    days.
    """

    day: date
    item: str
    amount_pusd: int
    project: str | None = None
    quantity: Decimal | None = None
    unit: str | None = None
    charge: int | None = None
