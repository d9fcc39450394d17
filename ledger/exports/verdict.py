"""The verdict as CSV: a row for each number of GPUs of each pool, with the verdict's own amounts.

Every row repeats the sentence, the sheet's version and whether parts are simulated, so that a row
that is copied elsewhere still says what it is.
"""

from collections.abc import Iterator

from ledger.economics.fleet_verdict import FleetVerdict, PoolVerdict, VerdictOption
from ledger.economics.verdict_text import sentence
from ledger.exports.delimited import csv_lines
from ledger.exports.table import ColumnKind, ExportColumn, Row

COLUMNS = (
    ExportColumn("pool"),
    ExportColumn("action"),
    ExportColumn("gpus_now", ColumnKind.INTEGER),
    ExportColumn("gpus", ColumnKind.INTEGER),
    ExportColumn("is_best", ColumnKind.FLAG),
    ExportColumn("allowed", ColumnKind.FLAG),
    ExportColumn("why_not"),
    ExportColumn("gpu_usd", ColumnKind.USD),
    ExportColumn("ops_usd", ColumnKind.USD),
    ExportColumn("api_usd", ColumnKind.USD),
    ExportColumn("total_usd", ColumnKind.USD),
    ExportColumn("total_pro_rata_usd", ColumnKind.USD),
    ExportColumn("month_hours", ColumnKind.QUANTITY),
    ExportColumn("assumptions_version"),
    ExportColumn("simulated", ColumnKind.FLAG),
    ExportColumn("sentence"),
)


def verdict_csv(verdict: FleetVerdict, *, simulated: bool) -> str:
    """Return the header and a row for each option; a pool without a verdict has one row."""
    return "".join(csv_lines(COLUMNS, _rows(verdict, simulated=simulated)))


def _rows(verdict: FleetVerdict, *, simulated: bool) -> Iterator[Row]:
    sheet = verdict.sheet
    tail = (sheet.month_hours, sheet.version, simulated, sentence(verdict))
    for pool in verdict.pools:
        if pool.action is None:
            yield (pool.pool, None, None, None, None, False, pool.why_none, *[None] * 5, *tail)
        for option in pool.options:
            yield (*_option(pool, option), *tail)


def _option(pool: PoolVerdict, option: VerdictOption) -> Row:
    amounts = (
        option.gpu_pusd, option.ops_pusd, option.api_pusd, option.total_pusd, option.pro_rata_pusd,
    )  # fmt: skip
    return (
        pool.pool, None if pool.action is None else str(pool.action),
        None if pool.now is None else pool.now.gpus, option.gpus,
        pool.best is not None and pool.best.engines == option.engines,
        option.allowed, option.why_not,
        *(None if pusd is None else round(pusd) for pusd in amounts),
    )  # fmt: skip
