"""Cost of the current calendar month so far, and the forecast for its end."""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from sqlalchemy import Connection

from ledger.economics.month_forecast import LEAST_DAYS, MOST_DAYS, MonthForecast, forecast_month
from ledger.queries import reads as queries
from ledger.reporting_zone import ReportingZone
from ledger.reports.daily import DaySpend, spend_by_day
from ledger.reports.month_pace import month_pace
from ledger.spans import DAY_US, HOUR_US, Scope

USUAL_DAYS = 28  # whose hours say how much of a day's cost is still to come


@dataclass(frozen=True, slots=True)
class MonthOutlook:
    """The current month of the reporting zone. `forecast` is `None` before seven whole days.

    `spent_pusd` includes `adjusted_pusd`, the difference to posted invoices of its days. The
    forecast excludes the GPUs of `unknown` pools: their future rate or past hours are unknown.
    """

    start_us: int
    end_us: int
    timezone: str
    spent_pusd: int
    forecast: MonthForecast | None
    adjusted_pusd: int = 0
    unknown: tuple[str, ...] = ()


def month_outlook(
    connection: Connection, now_us: int, zone: ReportingZone, team: str | None = None
) -> MonthOutlook:
    """Return the outlook from the whole days before today; today counts as a future day.

    Past days count as booked, future days at the rates known for them. Adjustments count only for
    the past. What today has cost beyond the usual by this time of day is added.
    """
    start_us, end_us = zone.month(now_us)
    today_us = zone.day(now_us)[0]
    begun = (queries.first_us(connection), queries.first_gpu_hour_us(connection))
    first_us = min((at_us for at_us in begun if at_us is not None), default=today_us)
    from_us = max(first_us, today_us - MOST_DAYS * DAY_US)
    if zone.day(from_us)[0] != from_us:
        from_us = min(zone.day(from_us)[1], today_us)  # a partial day says nothing about whole days
    days = spend_by_day(connection, Scope(min(start_us, from_us), now_us, team), zone)
    whole = _since_spend_began(
        [day for day in days if from_us <= day.start_us and day.end_us <= today_us]
    )
    from_us = whole[0].start_us if whole else from_us
    spent = sum(day.total_pusd for day in days if day.start_us >= start_us)
    adjusted = sum(day.adjusted_pusd for day in days if day.start_us >= start_us)
    before = sum(day.booked_pusd for day in days if start_us <= day.start_us < from_us)
    coming = list(zone.days(Scope(today_us, end_us)))
    pace = month_pace(connection, whole, coming, team, now_us)
    found = forecast_month(
        [day.booked_pusd for day in whole],
        last_weekday=zone.date_of(today_us - DAY_US // 2).weekday(),
        days_over=sum(day.start_us >= start_us for day in whole),
        days_left=len(coming),
        paces=pace.pasts,
        certain_pusd=pace.certain_pusd,
    )
    today = sum(day.booked_pusd for day in days if day.start_us >= today_us)
    excess = 0
    if found is not None:
        certain = Fraction(pace.certain_pusd, len(coming))
        over = Fraction(now_us - today_us, coming[0].end_us - today_us)
        usual = _usual_share(connection, whole[-USUAL_DAYS:], now_us - today_us, team)
        excess = max(0, round(today - certain * over - (found.next_pusd - certain) * usual))
    ends = _at_least(found, before + adjusted, spent, excess)
    unknown = () if ends is None else pace.unknown
    return MonthOutlook(start_us, end_us, zone.name, spent, ends, adjusted, unknown)


def _since_spend_began(days: list[DaySpend]) -> list[DaySpend]:
    """Return the days after the day of the first spend, which may be partial.

    Days before that say nothing about a new team's pace. If nothing was ever spent, all days are
    returned.
    """
    began = next((place for place, day in enumerate(days) if day.booked_pusd), 0)
    return days[began + 1 :] if began else days


def _usual_share(
    connection: Connection, days: list[DaySpend], elapsed_us: int, team: str | None
) -> Fraction:
    """Return the share of these days' cost of requests that came by this time of day."""
    starts = [day.start_us for day in days]
    early = whole = 0
    scope = Scope(starts[0], days[-1].end_us, team)
    for point in queries.spent(connection, scope, by="backend", bucket_us=HOUR_US):
        middle_us = point.start_us + HOUR_US // 2  # in zones off the full hour midnight cuts hours
        day_us = starts[max(0, bisect_right(starts, middle_us) - 1)]
        over_us = min(max(0, elapsed_us - (point.start_us - day_us)), HOUR_US)
        early += point.cost_pusd * over_us
        whole += point.cost_pusd * HOUR_US
    return Fraction(early, whole) if whole else Fraction(0)


def _at_least(
    found: MonthForecast | None, before_pusd: int, spent_pusd: int, excess_pusd: int
) -> MonthForecast | None:
    """Add the month's spend before the whole days; no forecast is below the spend so far."""
    if found is None:
        return None
    ends = (found.expected_pusd, found.low_pusd, found.high_pusd)
    expected, low, high = (max(spent_pusd, pusd + before_pusd + excess_pusd) for pusd in ends)
    return MonthForecast(expected, low, high, spent_pusd, found.days_left)


def month_text(outlook: MonthOutlook, money: Callable[[int], str]) -> str:
    """Return the outlook as a sentence; `money` formats an amount."""
    name = f"{ReportingZone(outlook.timezone).date_of(outlook.start_us):%B %Y}"
    spent = f"{name} has cost {money(outlook.spent_pusd)} so far"
    if outlook.adjusted_pusd:
        spent += f" ({money(outlook.adjusted_pusd)} of that are adjustments to bills)"
    found = outlook.forecast
    if found is None:
        return f"{spent}; a forecast needs {LEAST_DAYS} whole days in the ledger."
    low, high = money(found.low_pusd), money(found.high_pusd)
    ends = "" if low == high else f" ({low} to {high})"
    days = "1 day is" if found.days_left == 1 else f"{found.days_left} days are"
    text = f"{spent}; about {money(found.expected_pusd)} at its end{ends}, {days} to come"
    if outlook.unknown:
        names = ", ".join(f"`{pool}`" for pool in outlook.unknown)
        text += f", without the GPUs of {names}, whose rate is not known"
    return f"{text}."
