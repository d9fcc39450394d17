"""Rows as Parquet: row groups of limited size, money as decimal128(38, 12), times in UTC.

`pyarrow` comes with the dashboard. Without `pyarrow` the writer raises `ExportError`; CSV still
works.
"""

import importlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, BinaryIO

from ledger.exports.table import ColumnKind, ExportColumn, ExportError, Row
from ledger.money import pusd_to_usd

ROWS_PER_GROUP = 20_000


def write_parquet(
    file: BinaryIO,
    columns: Sequence[ExportColumn],
    rows: Iterable[Row],
    *,
    rows_per_group: int = ROWS_PER_GROUP,
) -> None:
    """Write all rows in row groups. An empty table has its columns.

    Raises `ExportError` without `pyarrow`.
    """
    try:
        arrow: Any = importlib.import_module("pyarrow")
        parquet: Any = importlib.import_module("pyarrow.parquet")
    except ImportError as error:
        raise ExportError(
            "Parquet needs pyarrow, which comes with the dashboard: "
            "pip install 'breakeven[dashboard]', or use --format csv"
        ) from error
    kinds = _types(arrow)
    schema = arrow.schema([(column.name, kinds[column.kind]) for column in columns])
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in _batches(rows, rows_per_group):
            arrays = [
                arrow.array(_values(column.kind, values), kinds[column.kind])
                for column, values in zip(columns, zip(*batch, strict=True), strict=True)
            ]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))


def _types(arrow: Any) -> dict[ColumnKind, Any]:
    """Return the Arrow type of each kind. Prices and quantities occur only in FOCUS, as CSV."""
    return {
        ColumnKind.TEXT: arrow.string(),
        ColumnKind.INTEGER: arrow.int64(),
        ColumnKind.FLAG: arrow.bool_(),
        ColumnKind.INSTANT: arrow.timestamp("us", tz="UTC"),
        ColumnKind.USD: arrow.decimal128(38, 12),
    }


def _values(kind: ColumnKind, values: Sequence[Any]) -> Sequence[Any]:
    if kind is ColumnKind.USD:
        return [None if value is None else pusd_to_usd(value) for value in values]
    return values


def _batches(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    source = iter(rows)
    while batch := list(islice(source, size)):
        yield batch
