"""The cost of a calendar month at its end, with an interval, forecast from its past days.

Each weekday has a level of its own, drawn towards the mean of all while it was seen few times; what
days are beside their weekday is fitted by a straight line, which is damped and which counts only as
far as it stands out of the noise. What is over counts as it was. The interval holds the noise of
each day to come, of the level and of the line: nine of ten months end inside.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

LEAST_DAYS = 7  # each weekday once
MOST_DAYS = 56  # older days say little of this month's pace
SHRINK = 1.0  # a weekday's mean counts as if a day of the mean of all stood beside it
DAMPING = 0.93  # of the trend, each further day
QUANTILE = 1.55  # of the scaled error: nine of ten months end inside
USUAL_NOISE, USUAL_DAYS = 0.12, 6.0  # few days are taken to be as noisy as days use to be
TREND_DAYS = 14  # each weekday twice: before, a weekday is taken for a trend
STEEPEST = 0.006  # of a day's cost, each day: what trends of spending use to be
DOUBT = 2.0  # errors of its slope by which a trend must stand out to count in full
MOST_ALIKE = 0.75
ALIKE = 2.0  # days of one week are high or low together: so much more variance has a sum of them


@dataclass(frozen=True, slots=True)
class MonthForecast:
    """`low` and `high`: the interval; neither is below what is spent already."""

    expected_pusd: int
    low_pusd: int
    high_pusd: int
    spent_pusd: int
    days_left: int


@dataclass(frozen=True, slots=True)
class _Fit:
    level: float  # of the day after the last
    slope: float  # a day
    noise: float  # standard deviation of one day beside weekday and line
    alike: float  # so much more variance has a sum of days than as many unlike ones
    days: int
    weekdays: tuple[float, ...]  # factors

    def of(self, ahead: int, weekday: int) -> float:
        """Return the cost of a day; 0 is the day after the last."""
        risen = self.slope * (1 - DAMPING**ahead) / (1 - DAMPING)
        return max(0.0, self.level + risen) * self.weekdays[weekday]


def forecast_month(
    past_pusd: Sequence[int],
    *,
    last_weekday: int,
    days_over: int,
    days_left: int,
    paces: Sequence[tuple[int, ...]] | None = None,
    certain_pusd: int = 0,
) -> MonthForecast | None:
    """Return the month's total; None with fewer than seven days.

    `past_pusd` are whole days in order, as many as there are; the last one's weekday is
    `last_weekday` (Monday is 0), and the last `days_over` of them are the month's. `paces` are the
    same days as they would have been at the rates of each day left, without `certain_pusd`, which
    the days left cost whatever comes; without paces the past days themselves.
    """
    spent = sum(past_pusd[len(past_pusd) - days_over :]) if days_over else 0
    if len(past_pusd) < LEAST_DAYS:
        return None
    if not days_left:
        return MonthForecast(spent, spent, spent, spent, 0)
    each = [tuple(past_pusd)] * days_left if paces is None else paces
    fits = {
        pace: _fit([float(pusd) for pusd in pace[-MOST_DAYS:]], last_weekday) for pace in set(each)
    }
    rest = sum(
        fits[pace].of(ahead, (last_weekday + 1 + ahead) % 7) for ahead, pace in enumerate(each)
    )
    # The same days are uncertain at every rate, so their errors add up.
    error = QUANTILE * sum(
        _error_of_sum(fit, days_left) * (each.count(pace) / days_left) for pace, fit in fits.items()
    )
    known = spent + certain_pusd
    return MonthForecast(
        known + round(rest),
        known + max(0, round(rest - error)),
        known + max(0, round(rest + error)),
        spent,
        days_left,
    )


def _fit(days: Sequence[float], last_weekday: int) -> _Fit:
    count = len(days)
    weekdays = [(last_weekday - (count - 1 - place)) % 7 for place in range(count)]
    mean = sum(days) / count
    if mean <= 0:
        return _Fit(0.0, 0.0, 0.0, 1.0, count, (1.0,) * 7)
    factors = _factors(days, weekdays, mean)
    plain = [cost / factors[weekday] for cost, weekday in zip(days, weekdays, strict=True)]
    middle = (count - 1) / 2
    spread = sum((place - middle) ** 2 for place in range(count))
    level = sum(plain) / count
    slope = sum((place - middle) * cost for place, cost in enumerate(plain)) / spread
    off = [cost - level - slope * (place - middle) for place, cost in enumerate(plain)]
    # A weekday's factor was fitted to its own days: what is left is smaller than the noise.
    free = max(1.0, count - 2 - _used(weekdays))
    usual = min(USUAL_NOISE, sqrt(sum((cost / mean - 1) ** 2 for cost in days) / count)) * mean
    noise = sqrt((sum(item * item for item in off) + USUAL_DAYS * usual**2) / (free + USUAL_DAYS))
    doubt = noise / sqrt(spread)
    kept = slope * (1 - min(1.0, DOUBT * (doubt / slope) ** 2)) if slope else 0.0
    if count < TREND_DAYS:
        kept = 0.0
    return _Fit(level + kept * (count - middle), kept, noise, _alike(off), count, tuple(factors))


def _alike(off: Sequence[float]) -> float:
    """Return it from how a day resembles the one before; at least what is usual."""
    square = sum(item * item for item in off)
    if not square:
        return ALIKE
    both = sum(first * second for first, second in pairwise(off)) / square
    likeness = min(MOST_ALIKE, both + 2 / len(off))  # few days show less of it than there is
    return max(ALIKE, (1 + likeness) / (1 - likeness))


def _factors(days: Sequence[float], weekdays: Sequence[int], mean: float) -> list[float]:
    factors = []
    for weekday in range(7):
        own = [cost for cost, name in zip(days, weekdays, strict=True) if name == weekday]
        factors.append((sum(own) / mean + SHRINK) / (len(own) + SHRINK))
    scale = sum(factors[weekday] for weekday in weekdays) / len(weekdays)
    return [max(factor / scale, 1e-6) for factor in factors]


def _used(weekdays: Sequence[int]) -> float:
    """Return degrees of freedom that the factors take: less of them the more they are shrunk."""
    counts = [weekdays.count(weekday) for weekday in range(7)]
    return sum(count / (count + SHRINK) for count in counts if count) * 0.5


def _error_of_sum(fit: _Fit, days_left: int) -> float:
    """Standard error of the sum of the days to come: their own noise, the level's, the line's."""
    own = fit.alike * days_left * fit.noise**2
    level = fit.alike * (days_left * fit.noise) ** 2 / fit.days
    spread = fit.days * (fit.days**2 - 1) / 12
    slope = min(fit.alike * fit.noise**2 / spread, (STEEPEST * fit.level) ** 2)
    line = slope * (days_left * (fit.days + days_left) / 2) ** 2
    return sqrt(own + level + line)
