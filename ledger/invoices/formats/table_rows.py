"""The rows of a table of an invoice, for each format that is a CSV."""

from collections.abc import Collection, Iterator, Mapping

from ledger.csvtable import CsvTable
from ledger.invoices.formats.cell_reader import CellReader


def table_rows(
    reader: CellReader, table: CsvTable, wanted: Mapping[str, Collection[str]]
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield each row's place in words and its cells by column; a missing column ends the reading.

    `wanted` are the columns that must be there, by the name that a fault gives: one of each.
    """
    missing = [name for name, columns in wanted.items() if not {*columns} & {*table.columns}]
    if missing:
        names = " and no ".join(f"`{name}`" for name in missing)
        reader.faults.append(f"line {table.header}: no column {names}")
        return
    for line in table.lines:
        where = f"line {line.number}"
        if len(line.cells) < len({*table.columns}):
            reader.faults.append(f"{where}: it has not as many cells as the first line has titles")
        else:
            yield where, line.cells
