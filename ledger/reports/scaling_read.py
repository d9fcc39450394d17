"""Daily results of scaling, compared with the fixed fleet and with APIs only."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any

from sqlalchemy import Connection

from ledger.economics.scaling_score import PlanSum, ScoredSpan
from ledger.fleet.fleet_reads import scored_hours
from ledger.reporting_zone import ReportingZone, reporting_zone
from ledger.spans import HOUR_US


@dataclass(frozen=True, slots=True)
class EarnedDay:
    """Result of one day of the reporting zone, as far as it was scored."""

    date: str
    span: ScoredSpan

    @property
    def against_fixed_pusd(self) -> int:
        """Return how much less the actual engines cost than the configured number, in pico-USD."""
        return self.span.as_configured.total_pusd - self.span.ran.total_pusd

    @property
    def against_api_pusd(self) -> int:
        """Return how much less the actual engines cost than no engine at all, in pico-USD."""
        return self.span.all_api.total_pusd - self.span.ran.total_pusd

    @property
    def advice_pusd(self) -> int:
        """Return how much less the advised engines would have cost than the actual, in pico-USD."""
        return self.span.ran.total_pusd - self.span.advised.total_pusd

    def described(self) -> dict[str, Any]:
        """Return the day for JSON; money is whole pico-USD."""
        best, cost = self.span.best_fixed
        return {
            "date": self.date,
            "hours": self.span.covered_us / HOUR_US,
            "requests": self.span.requests,
            "ran": _sum(self.span.ran),
            "advised": _sum(self.span.advised),
            "fixed": {"engines": self.span.fixed_engines, **_sum(self.span.as_configured)},
            "best_fixed": {"engines": best, **_sum(cost)},
            "all_api": _sum(self.span.all_api),
            "against_fixed_pusd": self.against_fixed_pusd,
            "against_api_pusd": self.against_api_pusd,
            "advice_pusd": self.advice_pusd,
        }


def _sum(found: PlanSum) -> dict[str, int]:
    return {
        "rent_pusd": found.rent_pusd,
        "api_pusd": found.api_pusd,
        "total_pusd": found.total_pusd,
    }


def earned_days(connection: Connection, pool: str, start_us: int, end_us: int) -> list[EarnedDay]:
    """Return the scored days of a span, in order."""
    spans = scored_hours(connection, pool, start_us - start_us % HOUR_US, end_us)
    return by_day(spans, reporting_zone(connection))


def by_day(spans: Iterable[ScoredSpan], zone: ReportingZone) -> list[EarnedDay]:
    """Return hours added up by the day in which each begins."""
    days: dict[str, list[ScoredSpan]] = {}
    for span in spans:
        days.setdefault(zone.date_of(span.start_us).isoformat(), []).append(span)
    return [EarnedDay(date, reduce(add, hours)) for date, hours in sorted(days.items())]
