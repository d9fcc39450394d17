"""Reader of FOCUS CSV from a cloud (1.0 and later).

`BilledCost` is spread over the UTC days of its charge period, from `ChargePeriodStart` (included)
to `ChargePeriodEnd` (excluded).
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ledger.csvtable import CsvTable
from ledger.instants import DAY_US, day_of, time_in_days
from ledger.invoices.formats.cell_reader import CellReader
from ledger.invoices.formats.invoice_line import InvoiceLine
from ledger.invoices.formats.table_rows import table_rows
from ledger.money import split_largest_remainder

COST = "billedcost"  # the column that identifies a FOCUS file
DAYS_LIMIT = 366  # maximum days of a charge's period
_WANTED = {"BilledCost": (COST,), "ChargePeriodStart": ("chargeperiodstart",)}


def read_focus_table(reader: CellReader, table: CsvTable) -> Iterator[InvoiceLine]:
    """Yield one line per day of each charge. Faults go to the reader."""
    for charge, (where, cells) in enumerate(table_rows(reader, table, _WANTED), 1):
        period = _charge_period(reader, where, cells)
        pusd = reader.read_amount(cells[COST], where, (cells.get("billingcurrency"),))
        quantity = reader.read_quantity(cells.get("consumedquantity"), where)
        if period is None or pusd is None:
            continue
        category = cells.get("chargecategory") or "Usage"
        item = cells.get("resourceid") or cells.get("resourcename") or cells.get("skuid") or ""
        if category != "Usage":
            item = f"{category}: {item or cells.get('chargedescription') or ''}".strip()
        unit, account = cells.get("consumedunit") or None, cells.get("subaccountid") or None
        line = InvoiceLine(day_of(period[0]), item, pusd, account, quantity, unit, charge)
        yield from _spread(line, *period)


def _charge_period(
    reader: CellReader, where: str, cells: Mapping[str, str]
) -> tuple[int, int] | None:
    """Return start and end of a charge in microseconds. Without an end it covers one day."""
    start_us = reader.read_instant(cells["chargeperiodstart"], where, "ChargePeriodStart")
    end = cells.get("chargeperiodend")
    end_us = reader.read_instant(end, where, "ChargePeriodEnd") if end else start_us
    if start_us is None or end_us is None:
        return None
    if end_us < start_us:
        reader.faults.append(f"{where}: its period ends before it begins")
        return None
    days = -(-end_us // DAY_US) - start_us // DAY_US
    if days > DAYS_LIMIT:
        reader.faults.append(f"{where}: a charge for {days} days; split it into years")
        return None
    return start_us, end_us


def _spread(line: InvoiceLine, start_us: int, end_us: int) -> Iterator[InvoiceLine]:
    """Yield a line per day of the period, in proportion to its time. The sum is exact."""
    days, times_us = zip(*time_in_days(start_us, end_us), strict=True)
    whole_us = sum(times_us)
    parts = split_largest_remainder(line.amount_pusd, times_us)
    for day, time_us, pusd in zip(days, times_us, parts, strict=True):
        part = None if line.quantity is None else line.quantity * time_us / whole_us
        yield replace(line, day=day, amount_pusd=pusd, quantity=part)
