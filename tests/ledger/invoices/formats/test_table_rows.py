"""Rows are given with their lines; columns that must be there are named."""

import pytest

from ledger.csvtable import read_table
from ledger.invoices.formats.cell_reader import CellReader
from ledger.invoices.formats.table_rows import table_rows

WANTED = {"date": ("date", "day"), "Cost": ("cost",)}


@pytest.mark.parametrize(
    ("text", "rows", "faults"),
    [
        (b"Day,cost \n1,2\n,\n\n3,4\n", ["line 2", "line 5"], []),
        (b"\nday;cost\n1;2;\n3\n", ["line 3"], ["line 4: it has not as many cells"]),
        (b"cost,x\n1,2\n", [], ["line 1: no column `date`"]),
        (b"x\n1\n", [], ["line 1: no column `date` and no `Cost`"]),
        (b"day,cost,cost\n1,2,3\n", ["line 2"], ["line 1, column `cost`: is named twice"]),
    ],
)
def test_rows_and_faults_have_their_lines(text, rows, faults):
    reader = CellReader()
    table = read_table(text, "", reader.faults)
    assert [where for where, _ in table_rows(reader, table, WANTED)] == rows
    assert len(reader.faults) == len(faults)
    assert all(map(str.startswith, reader.faults, faults))
