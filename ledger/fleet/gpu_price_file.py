"""GPU prices in a CSV file: `gpu,usd_per_hour,day,source` and optionally `kind`.

Every fault names its line and column. A file with a fault is refused as a whole.
"""

from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any, get_args

from ledger.csvtable import CsvLine, read_table
from ledger.fleet.entered_offers import PriceKind

COLUMNS = ("gpu", "usd_per_hour", "day", "source")
KINDS = get_args(PriceKind)


class GpuPriceFileError(ValueError):
    """The faults of a price file, one per line."""


def parse_gpu_prices(data: bytes, name: str = "") -> list[dict[str, Any]]:
    """Return the rows in the form of `POST /gpu-prices`.

    Raises `GpuPriceFileError`, or `CsvTableError` if the file is not a table.
    """
    faults: list[str] = []
    table = read_table(data, name, faults)
    prefix = f"{name}: " if name else ""
    missing = [column for column in COLUMNS if column not in table.columns]
    faults += [
        f"{prefix}line {table.header}: the column `{column}` is missing" for column in missing
    ]
    rows = [] if missing else [_row(line, prefix, faults) for line in table.lines]
    if not rows and not faults:
        faults.append(f"{prefix}the file has no price")
    if faults:
        raise GpuPriceFileError("\n".join(faults))
    return rows


def _row(line: CsvLine, prefix: str, faults: list[str]) -> dict[str, Any]:
    at = f"{prefix}line {line.number}, column"
    cells = {name: line.cells.get(name, "") for name in (*COLUMNS, "kind")}
    empty = (column for column in ("gpu", "source") if not cells[column])
    faults += [f"{at} `{column}`: is empty" for column in empty]
    try:
        if not Decimal(cells["usd_per_hour"]) > 0:
            faults.append(f"{at} `usd_per_hour`: is more than 0")
    except InvalidOperation:
        faults.append(f"{at} `usd_per_hour`: `{cells['usd_per_hour']}` is not a number of dollars")
    try:
        date.fromisoformat(cells["day"])
    except ValueError:
        faults.append(f"{at} `day`: `{cells['day']}` is not a day: write 2026-11-02")
    kind = cells["kind"].lower() or KINDS[0]
    if kind not in KINDS:
        faults.append(f"{at} `kind`: `{cells['kind']}` is none: {', '.join(KINDS)}")
    return {**cells, "kind": kind}
