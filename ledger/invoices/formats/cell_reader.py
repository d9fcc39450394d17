"""Parsing of an invoice's cells: amounts, quantities, times and texts, with their faults.

Amounts are USD, parsed as decimals and never as floats. Digits are limited before any calculation,
so that a short text with a large exponent cannot fill the memory.
"""

import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any

from ledger.instants import EXAMPLES, InstantError, day_of, instant_us
from ledger.money import MoneyError, usd_to_pusd_rounded
from ledger.prices.rates import BIGINT_LIMIT

WHOLE_DIGITS, PLACES = 24, 60  # maximum digits before and after the point
SHOWN = 60  # maximum characters of a cell in a fault
LONGEST = 200  # maximum characters of a number or a date
_NUMBER = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_YEARS = range(2000, 2101)


class CellReader:
    """A parser of cells that collects faults, and the most decimals of amounts (`places`)."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.places = 0

    def read_amount(self, value: Any, where: str, currencies: Iterable[Any] = ()) -> int | None:
        """Return pico-USD, rounded if the file has more digits. `None` adds a fault.

        `currencies` are the file's cells for the amount's currency; empty cells are ignored.
        """
        for currency in currencies:
            if currency is not None and _text_of(currency).strip().upper() not in ("", "USD"):
                words = f"the currency is {show_cell(currency)}; amounts must be USD"
                self.faults.append(f"{where}: {words}")
                return None
        usd = self._number(value, where, "an amount (write 1234.56)")
        if usd is None:
            return None
        try:
            pusd = usd_to_pusd_rounded(usd)
        except (InvalidOperation, MoneyError):
            pusd = BIGINT_LIMIT
        if abs(pusd) >= BIGINT_LIMIT:
            self.faults.append(f"{where}: {show_cell(value)} is more than one line can hold")
            return None
        exponent = usd.normalize().as_tuple().exponent
        self.places = max(self.places, -exponent if isinstance(exponent, int) else 0)
        return pusd

    def read_quantity(self, value: Any, where: str) -> Decimal | None:
        """Return a quantity, `None` for an empty cell or with a fault."""
        return None if value in (None, "") else self._number(value, where, "a quantity")

    def read_instant(self, value: str, where: str, column: str) -> int | None:
        """Return microseconds since the epoch, `None` with a fault."""
        place = f"{where}: column `{column}`"
        try:
            at_us = instant_us(value if len(value) <= LONGEST else f"{value[:SHOWN]}...")
        except InstantError as error:
            self.faults.append(f"{place}: {error}")
            return None
        if day_of(at_us).year not in _YEARS:
            self.faults.append(f"{place}: {value!r} is a date of another century; {EXAMPLES}")
            return None
        return at_us

    def read_text(self, value: Any, where: str) -> str | None:
        """Return a text that a database can store, `None` for other values."""
        if not isinstance(value, str):
            return None
        if "\0" in value or not _is_unicode(value):
            self.faults.append(f"{where}: {show_cell(value)} has a character that is not text")
            return None
        return value

    def _number(self, value: Any, where: str, what: str) -> Decimal | None:
        said = _text_of(value).strip()
        if not _NUMBER.fullmatch(said[: LONGEST + 1]):
            self.faults.append(f"{where}: {show_cell(value)} is not {what}")
            return None
        number = _decimal(said)
        if number is None:
            self.faults.append(f"{where}: {show_cell(value)} is more than one line can hold")
        return number


def _decimal(said: str) -> Decimal | None:
    """Return a number, `None` for one with too many digits."""
    if len(said) > LONGEST:
        return None
    try:
        number = Decimal(said)
    except InvalidOperation:  # the exponent is too large for a decimal
        return None
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or not -PLACES <= exponent <= WHOLE_DIGITS:
        return None
    return number if number.adjusted() < WHOLE_DIGITS else None


def _is_unicode(text: str) -> bool:
    """Return whether a text has no single surrogate, which JSON allows."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def show_cell(value: Any) -> str:
    """Return a cell for a fault, shortened if it is long."""
    said = repr(_text_of(value)[: SHOWN + 1])
    return said if len(said) <= SHOWN else f"{said[:SHOWN]}..."


def _text_of(value: Any) -> str:
    """Return a text or number as text, and the type's name for other values."""
    if isinstance(value, str | int | float | Decimal):
        return str(value)
    return "null" if value is None else type(value).__name__
