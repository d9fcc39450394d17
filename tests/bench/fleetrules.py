"""Whom the planner is compared with, and the planner itself as a rule of the fleet bench.

All see the steps before the one that they decide on, and today's prices.
"""

from collections import deque
from dataclasses import replace
from math import ceil
from time import process_time

import numpy as np
from fleetplay import RentRule, Rule
from fleetseries import DAY_S, RENT, Series

from router.scaling.plan import (
    ArrivalWindow,
    ClassArrivals,
    DemandClass,
    EngineLease,
    FleetState,
    PoolTerms,
    RentTerms,
)
from router.scaling.planner import FleetPlanner

THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3)
_TOLERANCE = 0.1
_PUSD = 10**12
_MOST = 400


class PlannerRule:
    """Ours. `cpu_s` is the CPU time of all its plans, `slowest_s` of one."""

    def __init__(self, series: Series, billing: RentRule) -> None:
        rent = round(RENT * _PUSD)
        terms = RentTerms(rent, unit_s=billing.unit_s, least_s=billing.least_s)
        self._planner = FleetPlanner(
            PoolTerms("pool", terms, start_s=billing.start_s, capacity=1.0, most=_MOST)
        )
        self._series, self._rates = series, series.rates.tolist()
        self.cpu_s = self.slowest_s = 0.0

    def __call__(self, step: int, ages: list[int]) -> int:
        series = self._series
        at_us = step * series.step_s * 1_000_000
        rate, rent = self._rates[max(0, step - 1)], round(RENT * _PUSD * series.rents[step])
        price = round(series.prices[step] * RENT * _PUSD / 3600)
        began = process_time()
        work = rate * series.step_s
        arrivals = (ClassArrivals("all", work, work),)
        self._planner.observe(ArrivalWindow(at_us, float(series.step_s), arrivals))
        engines = tuple(
            EngineLease(f"{place:04d}", at_us - age * series.step_s * 1_000_000, 0)
            for place, age in enumerate(ages)
        )
        state = FleetState(at_us, engines, (DemandClass("all", 1.0, price),))
        wanted = self._planner.size(replace(state, rent_pusd_per_hour=rent)).wanted
        spent = process_time() - began
        self.cpu_s += spent
        self.slowest_s = max(self.slowest_s, spent)
        return wanted


def rivals(series: Series, billing: RentRule) -> dict[str, Rule]:
    found: dict[str, Rule] = {
        f"threshold {target:.0%}": threshold(series, target) for target in THRESHOLDS
    }
    found["schedule"] = schedule(series)
    found["dollar rule"] = dollar(series)
    found["lazy provisioning"] = lazy(series, billing)
    found["KEDA queue"] = keda(series)
    return found


def dollar(series: Series) -> Rule:
    """One more engine while the last step would have paid for it: no forecast, no hysteresis."""
    rates, worth = series.rates.tolist(), (series.prices / series.rents).tolist()

    def wanted(step: int, ages: list[int]) -> int:
        rate = rates[max(0, step - 1)]
        whole = int(rate) if worth[step] > 1 else 0
        return whole + (1 if worth[step] > 1 and worth[step] * (rate - whole) > 1 else 0)

    return wanted


def threshold(series: Series, target: float) -> Rule:
    """A horizontal autoscaler on use; down only to the most that ten minutes asked for."""
    rates, steps = series.rates.tolist(), max(2, 600 // series.step_s)
    asked: deque[int] = deque(maxlen=steps)

    def wanted(step: int, ages: list[int]) -> int:
        rate, running = rates[max(0, step - 1)], max(1, len(ages))
        use = rate / running
        desired = running if abs(use / target - 1) <= _TOLERANCE else max(1, ceil(rate / target))
        asked.append(desired)
        return desired if desired >= len(ages) else max(asked)

    return wanted


def schedule(series: Series) -> Rule:
    """What would have been cheapest in the same step yesterday; on day one a threshold of 70 %."""
    rates, day = series.rates.tolist(), DAY_S // series.step_s
    worth, first = (series.prices / series.rents).tolist(), threshold(series, 0.7)

    def wanted(step: int, ages: list[int]) -> int:
        if step < day:
            return first(step, ages)
        rate = rates[step - day]
        whole = int(rate)
        return whole + (1 if worth[step] * (rate - whole) > 1 else 0) if worth[step] > 1 else 0

    return wanted


def lazy(series: Series, billing: RentRule) -> Rule:
    """Discrete lazy capacity provisioning: stay between two bounds of the optimum so far.

    A start costs the start-up's rent and what it then leaves to the API, half of an engine's use.
    """
    most = ceil(series.rates.max()) + 1
    counts = np.arange(most + 1)
    lower, upper = np.zeros(most + 1), np.zeros(most + 1)
    rates, prices, rents = series.rates, series.prices, series.rents

    def wanted(step: int, ages: list[int]) -> int:
        nonlocal lower, upper
        seen = max(0, step - 1)
        start = billing.start_s / series.step_s * (0.5 * prices[step])
        cost = counts * rents[seen] + prices[seen] * np.maximum(0.0, rates[seen] - counts)
        lower = cost + _moved(lower, start, 0.0)
        upper = cost + _moved(upper, 0.0, start)
        lower, upper = lower - lower.min(), upper - upper.min()
        least = int(lower.argmin())
        highest = most - int(upper[::-1].argmin())
        return min(max(len(ages), least), max(least, highest))

    def _moved(values: np.ndarray, up: float, down: float) -> np.ndarray:
        rising = np.minimum.accumulate(values - up * counts) + up * counts
        falling = np.minimum.accumulate((values + down * counts)[::-1])[::-1] - down * counts
        return np.minimum(rising, falling)

    return wanted


def keda(series: Series) -> Rule:
    """An autoscaler on the depth of queues: five waiting for each engine, down after 300 seconds.

    What does not fit waits for up to half a minute before it is bought; the first engine stays.
    """
    rates, kept = series.rates.tolist(), max(1, 300 // series.step_s)
    asked: deque[int] = deque(maxlen=kept)

    def wanted(step: int, ages: list[int]) -> int:
        over = max(0.0, rates[max(0, step - 1)] - len(ages))
        waiting = over * series.usable * min(30, series.step_s)
        # A horizontal autoscaler doubles at most; what waits is all that it sees.
        desired = min(ceil(waiting / 5), max(4, 2 * len(ages)))
        asked.append(max(1, desired))
        return max(asked)

    return wanted
