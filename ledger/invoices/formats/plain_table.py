"""Reader of CSV files with the columns `date` and `amount`.

Optional columns are `item` (or `model`, `line_item`), `project`, `quantity`, `unit` and `currency`.
A date may also be called `day`, an amount `amount_usd`, `cost` or `cost_usd`.
"""

from collections.abc import Iterator, Mapping

from ledger.csvtable import CsvTable
from ledger.instants import day_of
from ledger.invoices.formats.cell_reader import CellReader
from ledger.invoices.formats.invoice_line import InvoiceLine
from ledger.invoices.formats.table_rows import table_rows

_DAYS = ("date", "day")
_AMOUNTS = ("amount", "amount_usd", "cost", "cost_usd")
_ITEMS = ("item", "model", "line_item")


def read_plain_table(reader: CellReader, table: CsvTable) -> Iterator[InvoiceLine]:
    """Yield one line per row. Faults go to the reader."""
    for where, cells in table_rows(reader, table, {"date": _DAYS, "amount": _AMOUNTS}):
        at_us, pusd = _instant(reader, where, cells), _amount(reader, where, cells)
        quantity = reader.read_quantity(cells.get("quantity"), where)
        if at_us is not None and pusd is not None:
            item = next((cells[name] for name in _ITEMS if cells.get(name)), "")
            project, unit = cells.get("project") or None, cells.get("unit") or None
            yield InvoiceLine(day_of(at_us), item, pusd, project, quantity, unit)


def _instant(reader: CellReader, where: str, cells: Mapping[str, str]) -> int | None:
    titles = [name for name in _DAYS if cells.get(name)]
    titles = titles or [name for name in _DAYS if name in cells][:1]
    instants = [reader.read_instant(cells[title], where, title) for title in titles]
    return _agreed(reader, where, titles, instants)


def _amount(reader: CellReader, where: str, cells: Mapping[str, str]) -> int | None:
    titles = [name for name in _AMOUNTS if cells.get(name)]
    titles = titles or [name for name in _AMOUNTS if name in cells][:1]
    currencies = [cell for name, cell in cells.items() if "currency" in name]
    amounts = [reader.read_amount(cells[title], where, currencies) for title in titles]
    return _agreed(reader, where, titles, amounts)


def _agreed(
    reader: CellReader, where: str, titles: list[str], values: list[int | None]
) -> int | None:
    """Return the value of columns with one meaning. Different values are a fault."""
    known = {value for value in values if value is not None}
    if len(known) > 1:
        names = " and ".join(f"`{title}`" for title in titles)
        reader.faults.append(f"{where}: the columns {names} differ")
        return None
    return None if None in values else known.pop()
