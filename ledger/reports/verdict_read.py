"""The verdict and the booked figures of the same period, for reports, HTTP, CSV and mail.

All of them call `read_verdict` and do no arithmetic of their own.
"""

from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Connection

from ledger.economics.cost import HOURS_OF_A_MONTH, Exact, TokenBasis
from ledger.economics.fleet_verdict import FleetVerdict, judge
from ledger.economics.verdict_text import describe, usd_cents
from ledger.reporting_zone import ReportingZone
from ledger.reports.month_even import MonthEven, month_evens
from ledger.reports.survey import Survey, survey
from ledger.spans import DAY_US, HOUR_US, Scope

LEAST_COVERAGE = 0.9  # share of the period; a smaller one is noted


class MonthError(ValueError):
    """A month that is not `YYYY-MM`, or has not begun."""


@dataclass(frozen=True, slots=True)
class PeriodVerdict:
    """A `verdict` for the future and the booked figures `books` of a past period.

    `simulated` is true if parts are simulated. `even` are break-even volumes at the period's costs,
    for a month of the verdict's hours. `adjusted_pusd` is the difference to posted invoices of its
    days, which no team bears.
    """

    scope: Scope
    verdict: FleetVerdict
    books: dict[str, str | None]
    simulated: bool
    adjusted_pusd: int = 0
    even: tuple[MonthEven, ...] = ()

    @property
    def coverage_note(self) -> str | None:
        """Return a note if the ledger covers too little of the period, else `None`."""
        return coverage_text(self.verdict, self.scope)

    def described(self) -> dict[str, Any]:
        """Return the period, what it covers, `books` and `verdict` for JSON."""
        return {
            "start_us": self.scope.start_us, "end_us": self.scope.end_us,
            "simulated": self.simulated, "coverage": self.coverage_note, "books": self.books,
            "verdict": describe(self.verdict),
        }  # fmt: skip

    def beside(self) -> dict[str, Any]:
        """Return adjustments and break-even volumes for JSON."""
        return {
            "adjustments_usd": usd_cents(self.adjusted_pusd),
            "break_even": [line.described() for line in self.even],
        }  # fmt: skip


def read_verdict(
    connection: Connection, scope: Scope, *, month_hours: Exact = HOURS_OF_A_MONTH
) -> PeriodVerdict:
    """Return the fleet's verdict over a period. The scope's team is ignored."""
    everyone = replace(scope, team=None)
    found = survey(connection, everyone, bucket_us=DAY_US, basis=TokenBasis.INPUT_OUTPUT)
    verdict = found.verdict
    if verdict is None:
        raise LookupError("a survey of everyone has a verdict")
    verdict = of_month(verdict, month_hours)
    simulated = any(cell.simulated for cell in found.cells) or any(
        contract.simulated for contract in found.contracts
    )
    books = _books(found, verdict)
    even = evens_of(found, month_hours)
    return PeriodVerdict(everyone, verdict, books, simulated, found.adjusted_pusd, even)


def coverage_text(verdict: FleetVerdict, scope: Scope) -> str | None:
    """Return a note if billed hours cover too little of the scope of a verdict, else `None`."""
    period = (scope.end_us - scope.start_us) / HOUR_US
    held = {pool.pool: float(pool.assumptions.hours) for pool in verdict.judged}
    short = {pool: hours for pool, hours in held.items() if hours < LEAST_COVERAGE * period}
    if not short:
        return None
    parts = [f"pool {pool} is judged from {hours:,.1f}" for pool, hours in short.items()]
    if len(short) == len(held) and len(set(short.values())) == 1:
        parts = [f"It is judged from {next(iter(short.values())):,.1f}"]
    parts[0] = parts[0][0].upper() + parts[0][1:]
    return (
        f"{' and '.join(parts)} of the period's {period:,.0f} hours: the books have no more of "
        "own GPUs."
    )


def evens_of(found: Survey, month_hours: Exact = HOURS_OF_A_MONTH) -> tuple[MonthEven, ...]:
    """Return the break-even volumes of a survey's pools for a month of `month_hours`."""
    pools = {pool: look.standing for pool, look in found.pools.items()}
    return tuple(month_evens(pools, month_hours, found.standing.unrated))


def of_month(verdict: FleetVerdict, month_hours: Exact) -> FleetVerdict:
    """Return the verdict on the same traffic for a month of `month_hours`."""
    if month_hours == verdict.sheet.month_hours:
        return verdict
    return judge(replace(verdict.sheet, month_hours=month_hours), verdict.curves)


def month_scope(zone: ReportingZone, month: str, now_us: int) -> tuple[Scope, int]:
    """Return the past part of a calendar month of the zone, and the whole month's hours.

    Raises `MonthError` for an invalid month, or one that has not begun.
    """
    try:
        start_us, end_us = zone.month_named(month)
    except ValueError as error:
        raise MonthError(str(error)) from None
    if start_us >= now_us:
        raise MonthError(f"the month {month} has not begun")
    return Scope(start_us, min(end_us, now_us)), (end_us - start_us) // HOUR_US


def _books(found: Survey, verdict: FleetVerdict) -> dict[str, str | None]:
    """Return the booked figures of the period; ops cost is `None` if not entered."""
    fixed = found.standing.fixed
    entered = any(pool.ops_pusd_per_week is not None for pool in verdict.sheet.pools)
    return {
        "fixed_usd": usd_cents(fixed.total_pusd),
        "gpu_usd": usd_cents(fixed.gpu_pusd),
        "ops_usd": usd_cents(fixed.ops_pusd) if entered or fixed.ops_pusd else None,
        "api_usd": usd_cents(found.api_pusd),
        "hours": f"{float(found.standing.hours):g}",
    }
