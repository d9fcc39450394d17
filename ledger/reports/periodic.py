"""The periodic report by mail or chat: the verdict, changes in spend, anomalies.

Every figure comes from another report: the verdict from `read_verdict`, spend from the survey, the
forecast from `month_outlook`. This module adds no savings of options up. Text and JSON are made
from one object, so that mail, chat and files agree.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlalchemy import Connection

from ledger.budgets.scopes import valued_tag
from ledger.budgets.states import BudgetState, budget_states
from ledger.economics.assumptions import Assumption
from ledger.economics.verdict_text import dollars_and_cents, sentence, usd_cents
from ledger.queries import reads as queries
from ledger.queries.reads import SpendPoint
from ledger.reporting_zone import ReportingZone
from ledger.reports.month_outlook import month_outlook, month_text
from ledger.reports.movements import Anomaly, SpendChange, anomalies, movers
from ledger.reports.muting import heard, muted_series
from ledger.reports.verdict_read import PeriodVerdict, read_verdict
from ledger.reports.zone_days import day_spent
from ledger.spans import DAY_US, HOUR_US, Scope

SHOWN = 5
USUAL_DAYS = 28  # days that a day is compared with
LEAST_COVERAGE = 0.9  # of the period before
PERCENT = 100


class SpendGroup(StrEnum):
    """The dimensions by which a report lists changes and anomalies."""

    TEAM = "team"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class PeriodicReport:
    """Report of a period. `moved` is `None` if the ledger begins too late for a comparison.

    `moved` and `unusual` are by team and by model. `month` is a sentence about the month that
    contains `now_us`.
    """

    zone: ReportingZone
    judged: PeriodVerdict
    moved: Mapping[str, Sequence[SpendChange]] | None
    unusual: Mapping[str, Sequence[Anomaly]]
    budgets: tuple[BudgetState, ...]
    month: str
    now_us: int

    @property
    def title(self) -> str:
        scope = self.judged.scope
        first = self.zone.date_of(scope.start_us)
        last = self.zone.date_of(scope.end_us - 1)
        days = f"{first:%d %b %Y}" if first == last else f"{first:%d %b} to {last:%d %b %Y}"
        return f"{days} ({self.zone.name})"

    @property
    def is_unusual(self) -> bool:
        """Return whether there is any anomaly."""
        return any(self.unusual.values())

    def described(self) -> dict[str, Any]:
        """Return the report for JSON; money is decimal text in USD."""
        moved = None
        if self.moved is not None:
            moved = {by: [_change(item) for item in items] for by, items in self.moved.items()}
        return {
            "title": self.title,
            "timezone": self.zone.name,
            **self.judged.described(),
            **self.judged.beside(),
            "moved": moved,
            "unusual": {
                by: [_anomaly(item, self.zone) for item in items]
                for by, items in self.unusual.items()
            },
            "budgets": [_budget(state, self.now_us) for state in self.budgets],
            "month": self.month,
            "text": self.text(),
        }

    def text(self) -> str:
        """Return the report as plain text lines."""
        books = self.judged.books
        api, fixed = books["api_usd"], books["fixed_usd"]
        ops = "" if books["ops_usd"] is not None else ", ops not entered"
        if adjusted := self.judged.adjusted_pusd:
            ops += f", {dollars_and_cents(adjusted)} of adjustments to bills"
        lines = [
            self.title,
            *(["SIMULATED: parts of this traffic or hardware are simulated."]
              if self.judged.simulated else []),
            "",
            sentence(self.judged.verdict),
            *([note] if (note := self.judged.coverage_note) is not None else []),
            *(_sheet_line(line) for line in self.judged.verdict.sheet.lines),
            "",
            f"Spent: ${api} at APIs, ${fixed} for own engines{ops}.",
            f"The month under way: {self.month}",
            *self._moved_lines(),
            *self._unusual_lines(),
            *(_budget_line(state, self.now_us) for state in self.budgets),
        ]  # fmt: skip
        return "\n".join(lines) + "\n"

    def _moved_lines(self) -> list[str]:
        if self.moved is None:
            return ["What moved: the books hold too little of the period before to compare with."]
        lines = [
            f"Moved, {by} {item.name}: {dollars_and_cents(item.before_pusd)} to "
            f"{dollars_and_cents(item.now_pusd)}"
            for by, items in self.moved.items()
            for item in items
        ]
        return lines or ["Nothing moved."]

    def _unusual_lines(self) -> list[str]:
        lines = [
            f"Unusual, {by} {item.name}: {dollars_and_cents(item.pusd)} on "
            f"{self.zone.date_of(item.start_us):%d %b} (usual "
            f"{dollars_and_cents(item.usual_pusd)})"
            for by, items in self.unusual.items()
            for item in items
        ]
        return lines or ["Nothing stands out of its own past."]


def periodic_report(
    connection: Connection, scope: Scope, zone: ReportingZone, now_us: int
) -> PeriodicReport:
    """Read the report of a past period."""
    whole_month = zone.month(scope.start_us) == (scope.start_us, scope.end_us)
    hours: dict[str, Any] = {}
    if whole_month:
        hours["month_hours"] = (scope.end_us - scope.start_us) // HOUR_US
    every = budget_states(connection, now_us)
    states = [state for state in every if not (state.is_default or state.is_value)]
    tags = [state for state in every if state.is_default and valued_tag(state.scope) is not None]
    first_us = queries.first_us(connection)
    before = Scope(2 * scope.start_us - scope.end_us, scope.start_us)
    if whole_month:
        before = Scope(*zone.month(scope.start_us - 1))
    return PeriodicReport(
        zone,
        read_verdict(connection, scope, **hours),
        _moved(connection, before, scope, zone) if _is_covered(before, first_us) else None,
        {by: _unusual(connection, scope, zone, by, first_us) for by in SpendGroup},
        (*sorted(states, key=lambda state: (-_share(state), state.account))[:SHOWN], *tags),
        month_text(month_outlook(connection, now_us, zone), dollars_and_cents),
        now_us,
    )


def _is_covered(before: Scope, first_us: int | None) -> bool:
    if first_us is None or first_us >= before.end_us:
        return False
    held = before.end_us - max(before.start_us, first_us)
    return held >= LEAST_COVERAGE * (before.end_us - before.start_us)


def _spent(connection: Connection, scope: Scope, zone: ReportingZone, by: str) -> list[SpendPoint]:
    return day_spent(
        connection, scope, zone,
        lambda books, part, width_us: queries.spent(books, part, by=by, bucket_us=width_us),
    )  # fmt: skip


def _moved(
    connection: Connection, before: Scope, scope: Scope, zone: ReportingZone
) -> dict[str, list[SpendChange]]:
    found: dict[str, list[SpendChange]] = {}
    for by in SpendGroup:
        sums: list[Counter[str]] = []
        for span in (before, scope):
            counter = Counter[str]()
            for point in _spent(connection, span, zone, by):
                counter[point.name] += point.cost_pusd
            sums.append(counter)
        found[by] = movers(*sums)[:SHOWN]
    return found


def _unusual(
    connection: Connection, scope: Scope, zone: ReportingZone, by: str, first_us: int | None
) -> list[Anomaly]:
    """Return the days of the period with anomalies, by the weeks up to its end."""
    start_us = zone.day(min(scope.start_us, scope.end_us - USUAL_DAYS * DAY_US))[0]
    if first_us is not None and first_us > start_us:  # the first day of the ledger is partial
        start_us = min(zone.day(first_us)[1], scope.end_us)
    span = Scope(start_us, scope.end_us)
    starts = [day.start_us for day in zone.days(span)]
    points = _spent(connection, span, zone, by)
    found = anomalies(((p.start_us, p.name, p.cost_pusd) for p in points), starts)
    told = heard(found, by, muted_series(connection, scope.end_us))
    return [item for item in told if item.start_us >= scope.start_us][:SHOWN]


def _share(state: BudgetState) -> float:
    limit = state.line.limit_pusd
    return state.used_pusd / limit if limit else float(state.used_pusd > 0)


def _sheet_line(line: Assumption) -> str:
    value = "not known" if line.value is None else f"{line.value} {line.unit}".rstrip()
    pool = f" of pool {line.pool}" if line.pool else ""
    return f"  {line.name}{pool}: {value} ({line.source})"


def _change(change: SpendChange) -> dict[str, str]:
    return {
        "name": change.name, "before_usd": usd_cents(change.before_pusd),
        "now_usd": usd_cents(change.now_pusd),
    }  # fmt: skip


def _anomaly(anomaly: Anomaly, zone: ReportingZone) -> dict[str, str]:
    return {
        "name": anomaly.name, "day": f"{zone.date_of(anomaly.start_us)}",
        "usd": usd_cents(anomaly.pusd), "usual_usd": usd_cents(anomaly.usual_pusd),
    }  # fmt: skip


def _budget(state: BudgetState, now_us: int) -> dict[str, Any]:
    ahead = state.forecast_pusd(now_us)
    return {
        "scope": state.scope, "period": state.line.period, "hard": state.line.hard,
        "limit_usd": usd_cents(state.line.limit_pusd), "used_usd": usd_cents(state.used_pusd),
        "forecast_usd": None if ahead is None else usd_cents(ahead),
        **_bound_figures(state),
    }  # fmt: skip


def _bound_figures(state: BudgetState) -> dict[str, Any]:
    if state.bound is None:
        return {}
    return {
        "used_usd": usd_cents(state.bound.spent_pusd + state.bound.held_pusd), "forecast_usd": None,
        "values": state.bound.accounts, "exhausted": state.bound.exhausted,
    }  # fmt: skip


def _budget_line(state: BudgetState, now_us: int) -> str:
    if state.bound is not None:
        used = dollars_and_cents(state.bound.spent_pusd + state.bound.held_pusd)
        return (
            f"Budget {state.scope} this {state.line.period}: {state.bound.accounts:,} values used "
            f"{used}, {state.bound.exhausted:,} of them all of their "
            f"{dollars_and_cents(state.line.limit_pusd)}"
        )
    ahead = state.forecast_pusd(now_us)
    told = "" if ahead is None else f", about {dollars_and_cents(ahead)} at its end"
    return (
        f"Budget {state.scope} this {state.line.period}: {dollars_and_cents(state.used_pusd)} of "
        f"{dollars_and_cents(state.line.limit_pusd)} ({_share(state) * PERCENT:.0f} %){told}"
    )
