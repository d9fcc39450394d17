"""Data of charts and tables from a survey: sums by dimension, shares, labels.

Money is an integer until the last step, where a chart needs dollars as a float.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import streamlit as st

from dashboard import display, formatting, theme
from ledger.money import PUSD_PER_USD
from ledger.queries.reads import AttemptCell, SpendPoint
from ledger.reports.facts import BucketSums
from ledger.reports.series import SpendSeries, spend
from ledger.reports.survey import Survey

A_CENT = 0.01
PRESETS = {display.USD: "dollar", "EUR": "euro", "JPY": "yen"}  # Streamlit formats by currency


def dollars(pusd: float) -> float:
    return float(pusd) / PUSD_PER_USD


def shown_amount(pusd: float) -> float:
    """Return an amount for a table, in the displayed currency."""
    return dollars(pusd) * float(display.now().per_usd)


def labels(survey: Survey) -> list[str]:
    """Return the warnings of a page: simulated traffic, engines or prices."""
    simulated = sum(cell.attempts for cell in survey.cells if cell.simulated)
    total = sum(cell.attempts for cell in survey.cells)
    pools = [contract.pool for contract in survey.contracts if contract.simulated]
    if not simulated and not pools:
        return []
    named = f" (pools: {', '.join(pools)})" if pools else ""
    if not simulated:
        return [
            f"SIMULATED: own engines are simulated{named}, though none answered in this period."
        ]
    share = f"{formatting.percent(simulated / total)} of these requests"
    what = f"SIMULATED: {share} were answered by simulated engines or providers{named}"
    return [f"{what}. The arithmetic is real, the traffic is not."]


def own_hardware(survey: Survey) -> str:
    """Return "GPUs", or "machines" if there are none."""
    return formatting.hardware(contract.gpu_type for contract in survey.contracts).many


def own_rows(survey: Survey, *parts: tuple[str, int, str]) -> list[tuple[str, str, str]]:
    """Return a card's rows of (what, amount, color); none without own hardware.

    If no rate is known, the row asks for the rate, because $0 would be a figure.
    """
    bills, own = survey.standing.bills, f"Own {own_hardware(survey)}"
    rated = any(bill.is_rated for bill in bills)
    has_own = bool(bills) or any(cell.backend == "own" for cell in survey.cells)
    return [
        (f"{own}, {what}", formatting.money(pusd) if rated else "enter the rate", ink)
        for what, pusd, ink in parts
        if has_own
    ]


def ops_rows(survey: Survey) -> list[tuple[str, str, str]]:
    """Return a card's row of own hardware's ops cost; a missing entry is not shown as $0."""
    if not survey.standing.bills:
        return []
    ops = survey.standing.fixed.ops_pusd
    figure = formatting.money(ops) if ops else "not entered"
    bare = pools_without_ops(survey) if ops else ()
    lacking = f" (not entered for {', '.join(bare)})" if bare else ""
    return [(f"Ops of own {own_hardware(survey)}{lacking}", figure, theme.OPS)]


def adjustment_rows(survey: Survey) -> list[tuple[str, str, str]]:
    """Return a card's row of posted adjustments, of no team; none if there are no adjustments."""
    if not survey.adjustments:
        return []
    figure = formatting.money(survey.adjusted_pusd, sign=True)
    return [("Adjustments to bills, of no team", figure, theme.ADJUSTED)]


def pools_without_ops(survey: Survey) -> list[str]:
    """Return the pools that have a rate and no ops cost in the period."""
    bills = survey.standing.bills
    return [bill.pool for bill in bills if bill.is_rated and not bill.ops_pusd]


def money_over_time(survey: Survey) -> list[dict[str, Any]]:
    """Return the series of the cost chart; their colors are `charts.money_colours`."""
    own = own_hardware(survey)
    return [
        {
            "at": formatting.instant(amount.start_us),
            "until": formatting.instant(survey.bucket_of(amount.start_us)[1]),
            "bucket": amount.start_us,
            "kind": amount.line.value.replace(formatting.GPU.many, own),
            "usd": dollars(amount.pusd),
        }
        for amount in spend(survey)
    ]


def records_over_time(
    survey: Survey, key: Callable[[BucketSums], str], value: Callable[[BucketSums], float]
) -> list[dict[str, Any]]:
    """Return one record per bucket and key."""
    sums: dict[tuple[int, str], float] = defaultdict(float)
    for moment in survey.moments:
        sums[moment.start_us, key(moment)] += value(moment)
    return _records(survey, sums)


def spent_over_time(survey: Survey, spent: Iterable[SpendPoint]) -> list[dict[str, Any]]:
    """Return one record per bucket and group, in dollars."""
    return _records(
        survey, {(point.start_us, point.name): dollars(point.cost_pusd) for point in spent}
    )


def _records(survey: Survey, sums: Mapping[tuple[int, str], float]) -> list[dict[str, Any]]:
    return [
        {
            "at": formatting.instant(start),
            "until": formatting.instant(survey.bucket_of(start)[1]),
            "bucket": start,
            "kind": name,
            "value": total,
        }
        for (start, name), total in sorted(sums.items())
    ]


def slo_share(
    cells: Iterable[AttemptCell], backend: str | None, *, refused: int = 0
) -> float | None:
    """Return the share of answers with a known SLO that met it, 0 to 1; `None` without any.

    `refused` requests have no answer; if given, they count as missed.
    """
    met, missed = 0, refused
    for cell in cells:
        if cell.is_answered and backend in (None, cell.backend):
            met += cell.attempts if cell.slo_met else 0
            missed += cell.attempts if cell.slo_met is False else 0
    return met / (met + missed) if met + missed else None


def refused_rows(cells: Iterable[AttemptCell], refused: int) -> list[tuple[str, str, None]]:
    """Return rows of refused requests, which shares of answers omit; none without any."""
    if not refused:
        return []
    share = formatting.percent(slo_share(cells, None, refused=refused), digits=1)
    return [
        ("Refused, without an answer", formatting.count(refused), None),
        ("Inside the SLO, refused as missed", share, None),
    ]


def money_format(amounts: Iterable[float | None]) -> str:
    """Return a table column's format: cents, or as many places as the least amount needs.

    Currencies other than dollars, euros and yen have their code before each amount. Small dollar
    amounts do, too, if one is negative: the format would put the minus after the dollar sign.
    """
    code = display.now().code
    amounts = list(amounts)
    least = min((abs(amount) for amount in amounts if amount), default=1.0)
    if least >= A_CENT:
        return PRESETS.get(code, f"{code} %.2f")
    is_signed = any(amount < 0 for amount in amounts if amount)
    sign = "$" if code == display.USD and not is_signed else f"{code} "
    return f"{sign}%.{min(1 - math.floor(math.log10(least)), 12)}f"


def money_columns(
    table: Sequence[Mapping[str, Any]], names: Iterable[str], *, width: int | None = None
) -> dict[str, Any]:
    """Return columns with one format for all amounts of a table; `width` is in pixels."""
    names = tuple(names)
    form = money_format(row[name] for row in table for name in names)
    return {name: st.column_config.NumberColumn(format=form, width=width) for name in names}


def time_column(form: str = "D MMM HH:mm") -> Any:
    """Return a column of timestamps in the viewer's time zone."""
    return st.column_config.DatetimeColumn(format=form, timezone=display.now().zone)


def own_cost_by_team(survey: Survey) -> dict[str, int]:
    """Return each team's share of the bill: closed hours, and running hours so far."""
    costs: dict[str, int] = defaultdict(int)
    for cell in survey.team_hours:
        costs[cell.team] += cell.used_pusd
    for rest in survey.running:
        for team, pusd in rest.used_pusd.items():
            if survey.scope.team in (None, team):
                costs[team] += pusd
    return dict(costs)


__all__ = [
    "SpendSeries",
    "adjustment_rows",
    "dollars",
    "labels",
    "money_columns",
    "money_format",
    "money_over_time",
    "ops_rows",
    "own_cost_by_team",
    "own_hardware",
    "own_rows",
    "records_over_time",
    "refused_rows",
    "shown_amount",
    "slo_share",
    "spent_over_time",
    "time_column",
]
