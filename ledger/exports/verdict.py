"""The verdict as CSV: a row for each number of GPUs of each pool, with its amounts.

Every row repeats the sentence, the sheet's version, and whether parts are simulated, so that a
copied row is complete.
"""

from collections.abc import Iterator, Sequence

from ledger.economics.fleet_verdict import FleetVerdict, PoolVerdict, VerdictOption
from ledger.economics.verdict_text import sentence
from ledger.exports.delimited import csv_lines
from ledger.exports.table import ColumnKind, ExportColumn, Row
from ledger.reports.fleet_economics import ComparatorKind
from ledger.reports.month_even import ANY_API, MonthEven, whole

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
    ExportColumn("break_even_tokens", ColumnKind.INTEGER),
    ExportColumn("break_even_state"),
    ExportColumn("same_weights_break_even_tokens", ColumnKind.INTEGER),
    ExportColumn("same_weights_break_even_state"),
    ExportColumn("judged_hours", ColumnKind.QUANTITY),  # of own GPUs in the books of the period
)


def verdict_csv(verdict: FleetVerdict, *, simulated: bool, even: Sequence[MonthEven] = ()) -> str:
    """Return the header and a row for each option. A pool without a verdict has one row.

    `even` are the monthly break-even volumes, in input plus output tokens; each row has its pool's.
    """
    return "".join(csv_lines(COLUMNS, _rows(verdict, even, simulated=simulated)))


def _rows(verdict: FleetVerdict, even: Sequence[MonthEven], *, simulated: bool) -> Iterator[Row]:
    sheet = verdict.sheet
    tail = (sheet.month_hours, sheet.version, simulated, sentence(verdict))
    for pool in verdict.pools:
        evens = _evens([line for line in even if line.pool == pool.pool])
        ends = (*tail, *evens, pool.assumptions.hours)
        if pool.action is None:
            yield (pool.pool, None, None, None, None, False, pool.why_none, *[None] * 5, *ends)
        for option in pool.options:
            yield (*_option(pool, option), *ends)


def _evens(lines: Sequence[MonthEven]) -> Iterator[int | str | None]:
    """Yield volume and state of each comparator. A line for any API applies to both."""
    for against in ComparatorKind:
        told = [line for line in lines if line.against in (str(against), ANY_API)]
        yield whole(told[0].tokens) if told else None
        yield told[0].state if told else None


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
