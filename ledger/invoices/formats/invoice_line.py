"""The plain line that every format of invoices is read into."""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class InvoiceLine:
    """The cost of one day of one item. `quantity` counts `unit`s (tokens, hours), if it was told.

    `charge` is the number of the file's charge that it is a share of; None in formats without
    charges for several days.
    """

    day: date
    item: str
    amount_pusd: int
    project: str | None = None
    quantity: Decimal | None = None
    unit: str | None = None
    charge: int | None = None
