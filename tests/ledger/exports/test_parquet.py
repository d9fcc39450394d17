"""Parquet as another reader sees it: decimals, times in UTC, row groups of bounded size."""

import io
from datetime import UTC, datetime
from decimal import Decimal

import pyarrow.parquet as pq
import pytest

from ledger.database import snapshot
from ledger.exports import parquet as exports_parquet
from ledger.exports.attempts import COLUMNS, attempt_rows
from ledger.exports.parquet import write_parquet
from ledger.exports.table import ColumnKind, ExportColumn, ExportError
from ledger.spans import Scope

FEW = (
    ExportColumn("name"),
    ExportColumn("n", ColumnKind.INTEGER),
    ExportColumn("yes", ColumnKind.FLAG),
    ExportColumn("at", ColumnKind.INSTANT),
    ExportColumn("cost_usd", ColumnKind.USD),
)


def written(columns, rows, **more) -> pq.ParquetFile:
    file = io.BytesIO()
    write_parquet(file, columns, rows, **more)
    return pq.ParquetFile(io.BytesIO(file.getvalue()))


def test_values_come_back_exactly() -> None:
    rows = [("=1+1", 7, True, 1_500_000, -(10**25) - 1), (None, None, None, None, None)]
    table = written(FEW, rows).read()
    assert [str(field.type) for field in table.schema] == [
        "string", "int64", "bool", "timestamp[us, tz=UTC]", "decimal128(38, 12)",
    ]  # fmt: skip
    first, second = table.to_pylist()
    assert first == {
        "name": "=1+1", "n": 7, "yes": True, "cost_usd": Decimal("-10000000000000.000000000001"),
        "at": datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC),
    }  # fmt: skip
    assert set(second.values()) == {None}


def test_row_groups_are_bounded_and_nothing_is_a_table_still() -> None:
    found = written(FEW, [("a", n, True, n, n) for n in range(25)], rows_per_group=10)
    groups = [found.metadata.row_group(n).num_rows for n in range(found.num_row_groups)]
    assert groups == [10, 10, 5]
    assert written(FEW, []).read().num_rows == 0


def test_a_random_ledger_adds_up_and_no_money_is_a_float(random_ledger) -> None:
    scope = Scope(random_ledger.START_US, random_ledger.end_us)
    with snapshot(random_ledger.reader) as connection:
        found = written(COLUMNS, attempt_rows(connection, scope, lambda _: None))
    costs = found.read(columns=["cost_usd"]).column(0).to_pylist()
    total = sum(cost for cost in costs if cost is not None)
    assert len(costs) == random_ledger.written["rows"]
    assert total.scaleb(12) == random_ledger.total + random_ledger.written["own_pusd"]
    assert not [field for field in found.schema_arrow if "float" in str(field.type)]


def test_without_pyarrow_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(exports_parquet.importlib, "import_module", missing)
    with pytest.raises(ExportError, match="--format csv"):
        write_parquet(io.BytesIO(), FEW, [])
