"""Invoice files of providers and clouds, parsed to lines and refused as a whole if faulty.

The formats are `openai`, `csv` and `focus`: see the files of `formats`. Dates may have any form
that `ledger.instants` reads; days are UTC. All faults are reported at once, with their lines.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from hashlib import sha256

from ledger.csvtable import CsvTable, CsvTableError, read_table
from ledger.invoices.formats.cell_reader import CellReader
from ledger.invoices.formats.focus_table import COST, read_focus_table
from ledger.invoices.formats.invoice_line import InvoiceLine
from ledger.invoices.formats.openai_costs import read_openai_costs
from ledger.invoices.formats.plain_table import read_plain_table
from ledger.prices.rates import BIGINT_LIMIT

__all__ = ["FORMATS", "InvoiceError", "InvoiceFile", "InvoiceLine", "parse"]

FORMATS = ("openai", "csv", "focus")
FAULTS_SHOWN = 20


class InvoiceError(ValueError):
    """A file that is not a valid invoice. `faults` lists every reason, with its line if known."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        shown = self.faults[:FAULTS_SHOWN]
        more = len(self.faults) - len(shown)
        super().__init__("\n".join((*shown, *([f"... and {more} more"] if more else []))))


@dataclass(frozen=True, slots=True)
class InvoiceFile:
    """A parsed invoice file.

    `places` is the most decimals of an amount, which bounds the rounding at half of the last one.
    `digest` is the hash of the whole text. `offset_min` is minutes that its days are ahead of UTC,
    `None` if unknown.
    """

    format: str
    lines: tuple[InvoiceLine, ...]
    places: int
    digest: str
    offset_min: int | None = None

    @property
    def total_pusd(self) -> int:
        return sum(line.amount_pusd for line in self.lines)


def parse(text: str, format_: str | None = None) -> InvoiceFile:
    """Return the invoice in a text. Without a format, the text's own format is detected.

    Raises `InvoiceError` with every fault.
    """
    text = text.removeprefix("\ufeff")
    try:
        data = text.encode()
    except UnicodeEncodeError as error:
        number = text.count("\n", 0, error.start) + 1
        raise InvoiceError([f"line {number}: it has a character that is not text"]) from None
    reader = CellReader()
    chosen = "openai" if format_ is None and text.lstrip()[:1] in ("{", "[") else format_
    if chosen == "openai":
        lines = tuple(read_openai_costs(reader, text))
    else:
        table = _table(reader, data)
        chosen = chosen or ("focus" if COST in table.columns else "csv")
        lines = tuple(_table_lines(reader, table, chosen))
    if not lines and not reader.faults:
        reader.faults.append("it has no line")
    sums: dict[date, int] = {}
    for line in lines:
        sums[line.day] = sums.get(line.day, 0) + line.amount_pusd
    reader.faults += [
        f"{day}: more in one day than the books can post"
        for day, pusd in sums.items()
        if abs(pusd) >= BIGINT_LIMIT // 2
    ]
    if reader.faults:
        raise InvoiceError(reader.faults)
    return InvoiceFile(chosen, lines, reader.places, sha256(data).hexdigest())


def _table(reader: CellReader, data: bytes) -> CsvTable:
    try:
        return read_table(data, "", reader.faults)
    except CsvTableError as error:
        raise InvoiceError([str(error)]) from None


def _table_lines(reader: CellReader, table: CsvTable, chosen: str) -> Iterator[InvoiceLine]:
    read = read_focus_table if chosen == "focus" else read_plain_table
    return read(reader, table)
