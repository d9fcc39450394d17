"""The rows of an invoice table, for all CSV formats."""

from collections.abc import Collection, Iterator, Mapping

from ledger.csvtable import CsvTable
from ledger.invoices.formats.cell_reader import CellReader


def table_rows(
    reader: CellReader, table: CsvTable, wanted: Mapping[str, Collection[str]]
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield each row's location as text and its cells by column. Faults go to the reader.

    `wanted` are the required columns, by the name used in a fault; one spelling of each is enough.
    If one is missing, no rows are read.
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
