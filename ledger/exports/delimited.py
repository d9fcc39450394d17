"""Rows as CSV: RFC 4180, header, CRLF, UTF-8; texts quoted, numbers bare, null empty.

A text that a spreadsheet would run as a formula (it begins with `=`, `+`, `-`, `@`, a tab or a
carriage return, or a wide form of one) gets a leading apostrophe. A text that begins with an
apostrophe gets one too, so removing one apostrophe from every text that begins with one restores
the original. Numbers are never changed: a negative amount stays a number.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from io import TextIOWrapper
from typing import Any, BinaryIO

from ledger.exports.table import ColumnKind, ExportColumn, Row, moment
from ledger.money import divide_half_even, usd_exact

RISKY = frozenset("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20'")
PRICE_PLACES = 24
QUANTITY_PLACES = 12
_PUSD_PLACES = 12


def csv_lines(columns: Sequence[ExportColumn], rows: Iterable[Row]) -> Iterator[str]:
    """Yield the header and every row, each with its line end."""
    yield ",".join(text_cell(column.name) for column in columns) + "\r\n"
    cells = [CELLS[column.kind] for column in columns]
    for row in rows:
        yield (
            ",".join(
                [
                    "" if value is None else cell(value)
                    for cell, value in zip(cells, row, strict=True)
                ]
            )
            + "\r\n"
        )


def write_csv(file: BinaryIO, columns: Sequence[ExportColumn], rows: Iterable[Row]) -> None:
    """Write the header and all rows. The file stays open."""
    text = TextIOWrapper(file, encoding="utf-8", newline="", write_through=False)
    text.writelines(csv_lines(columns, rows))
    text.detach()  # flushes, and leaves the file open


def text_cell(value: str) -> str:
    """Return the text quoted, with its quotes doubled, and safe from formulas."""
    if value[:1] in RISKY and value:
        value = f"'{value}"
    return '"' + value.replace('"', '""') + '"'


def decimal_text(value: int | Fraction, places: int) -> str:
    """Return a decimal with at least one decimal place, rounded half-even to `places`.

    `70000.0`: readers that guess types must read a whole quantity as a decimal.
    """
    fraction = Fraction(value)
    scaled = divide_half_even(fraction.numerator * 10**places, fraction.denominator)
    whole, rest = divmod(abs(scaled), 10**places)
    digits = f"{rest:0{places}d}".rstrip("0") or "0"
    return f"{'-' if scaled < 0 else ''}{whole}.{digits}"


def _price(pusd: Fraction) -> str:
    return decimal_text(Fraction(pusd) / 10**_PUSD_PLACES, PRICE_PLACES)


CELLS: dict[ColumnKind, Callable[[Any], str]] = {
    ColumnKind.TEXT: text_cell,
    ColumnKind.INTEGER: str,
    ColumnKind.FLAG: lambda value: "true" if value else "false",
    ColumnKind.INSTANT: moment,
    ColumnKind.SECOND: lambda at_us: moment(at_us, digits=False),
    ColumnKind.USD: usd_exact,
    ColumnKind.PRICE: _price,
    ColumnKind.QUANTITY: lambda value: decimal_text(value, QUANTITY_PLACES),
}
