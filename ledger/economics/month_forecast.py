"""A forecast of a calendar month's total cost, with an interval, from past days.

Each weekday has its own level, shrunk towards the overall mean if it was seen only a few times. The
remaining variation is fitted by a damped straight line, which counts only as far as it exceeds the
noise. Past days count as they were. The interval covers the noise of each remaining day, of the
level and of the line: nine of ten months end inside it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

LEAST_DAYS = 7  # each weekday once
MOST_DAYS = 56  # older days predict this month poorly
SHRINK = 1.0  # a weekday's mean includes one more day at the overall mean
DAMPING = 0.93  # of the trend, each further day
QUANTILE = 1.55  # of the scaled error: nine of ten months end inside
USUAL_NOISE, USUAL_DAYS = 0.12, 6.0  # prior: typical noise of a day, counted as six days
TREND_DAYS = 14  # each weekday twice: with fewer days, weekdays look like a trend
STEEPEST = 0.006  # of a day's cost, per day: the usual maximum of spending trends
DOUBT = 2.0  # a trend is reduced by this times the squared relative error of its slope
MOST_ALIKE = 0.75
ALIKE = 2.0  # days of a week are high or low together: minimum factor on their sum's variance


@dataclass(frozen=True, slots=True)
class MonthForecast:
    """A month's total. `low_pusd` and `high_pusd` are the interval, never below `spent_pusd`.

    `next_pusd` is the expected cost of the first remaining day, in `expected_pusd`.
    """

    expected_pusd: int
    low_pusd: int
    high_pusd: int
    spent_pusd: int
    days_left: int
    next_pusd: int = 0


@dataclass(frozen=True, slots=True)
class _Fit:
    level: float  # of the day after the last
    slope: float  # a day
    noise: float  # standard deviation of one day around weekday and line
    alike: float  # factor on the variance of a sum, compared with independent days
    days: int
    weekdays: tuple[float, ...]  # factors

    def of(self, ahead: int, weekday: int) -> float:
        """Return the cost of a day; `ahead` 0 is the day after the last one."""
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
    """Return the month's total, `None` with fewer than seven past days.

    `past_pusd` are whole days in order. The last day's weekday is `last_weekday` (Monday is 0), and
    the last `days_over` days belong to the month. `paces` holds, for each remaining day, the past
    days as they would cost at that day's rates, without `certain_pusd`. The remaining days cost
    `certain_pusd` in any case. Without `paces`, the past days count as they are.
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
    following = fits[each[0]].of(0, (last_weekday + 1) % 7) + certain_pusd / days_left
    return MonthForecast(
        known + round(rest),
        known + max(0, round(rest - error)),
        known + max(0, round(rest + error)),
        spent,
        days_left,
        round(following),
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
    # A weekday's factor was fitted to its own days, so the residuals are smaller than the noise.
    free = max(1.0, count - 2 - _used(weekdays))
    usual = min(USUAL_NOISE, sqrt(sum((cost / mean - 1) ** 2 for cost in days) / count)) * mean
    noise = sqrt((sum(item * item for item in off) + USUAL_DAYS * usual**2) / (free + USUAL_DAYS))
    doubt = noise / sqrt(spread)
    kept = slope * (1 - min(1.0, DOUBT * (doubt / slope) ** 2)) if slope else 0.0
    if count < TREND_DAYS:
        kept = 0.0
    return _Fit(level + kept * (count - middle), kept, noise, _alike(off), count, tuple(factors))


def _alike(off: Sequence[float]) -> float:
    """Return the variance factor of a sum of days, from how each day resembles the last one."""
    square = sum(item * item for item in off)
    if not square:
        return ALIKE
    both = sum(first * second for first, second in pairwise(off)) / square
    likeness = min(MOST_ALIKE, both + 2 / len(off))  # corrects the bias of few days
    return max(ALIKE, (1 + likeness) / (1 - likeness))


def _factors(days: Sequence[float], weekdays: Sequence[int], mean: float) -> list[float]:
    factors = []
    for weekday in range(7):
        own = [cost for cost, name in zip(days, weekdays, strict=True) if name == weekday]
        factors.append((sum(own) / mean + SHRINK) / (len(own) + SHRINK))
    scale = sum(factors[weekday] for weekday in weekdays) / len(weekdays)
    return [max(factor / scale, 1e-6) for factor in factors]


def _used(weekdays: Sequence[int]) -> float:
    """Return the degrees of freedom of the weekday factors; shrunk factors use fewer."""
    counts = [weekdays.count(weekday) for weekday in range(7)]
    return sum(count / (count + SHRINK) for count in counts if count) * 0.5


def _error_of_sum(fit: _Fit, days_left: int) -> float:
    """Return the standard error of the remaining days' sum: days' noise, level and line."""
    own = fit.alike * days_left * fit.noise**2
    level = fit.alike * (days_left * fit.noise) ** 2 / fit.days
    spread = fit.days * (fit.days**2 - 1) / 12
    slope = min(fit.alike * fit.noise**2 / spread, (STEEPEST * fit.level) ** 2)
    line = slope * (days_left * (fit.days + days_left) / 2) ** 2
    return sqrt(own + level + line)
