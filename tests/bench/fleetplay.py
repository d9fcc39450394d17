"""Engines of the fleet bench in virtual time, and the plan that knows the whole series.

An engine is paid from the step that asks for it and serves once its start is over, for the rest of
that step in part. What they cannot carry is bought. Dollars are in hours of one engine's rent.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

import numpy as np
from fleetseries import Series


@dataclass(frozen=True)
class RentRule:
    """How engines start and are paid; `unit_s` 1 is by the second, `least_s` for each start."""

    start_s: float = 180.0
    unit_s: int = 1
    least_s: int = 600

    @property
    def hourly(self) -> bool:
        return self.unit_s > 1


@dataclass(frozen=True)
class Bill:
    """What the counted steps cost, in hours of rent at break-even, and engines started."""

    total: float
    starts: int


Rule = Callable[[int, list[int]], int]  # step and ages in steps -> engines wanted


def play(series: Series, billing: RentRule, rule: Rule) -> Bill:
    """Let a rule decide before each step; it may know the steps before."""
    step_s, hours = series.step_s, series.step_s / 3600
    late, unit = billing.start_s / step_s, max(1, billing.unit_s // step_s)
    least = max(1, round(billing.least_s / step_s))
    ages: list[int] = []
    total, starts = 0.0, 0
    rows = zip(series.rates.tolist(), series.prices.tolist(), series.rents.tolist(), strict=True)
    for step, (rate, price, rent) in enumerate(rows):
        wanted = max(0, rule(step, ages))
        begun = max(0, wanted - len(ages))
        if wanted < len(ages):
            ages = _stopped(ages, len(ages) - wanted, least, unit)
        ages = [0] * begun + ages
        if step >= series.counted_from:
            starts += begun
            bought = rate - _served(ages, rate, late)
            total += (len(ages) * rent + price * bought) * hours
        ages = [age + 1 for age in ages]
    return Bill(total, starts)


def _stopped(ages: list[int], surplus: int, least: int, unit: int) -> list[int]:
    """Stop the youngest that are at the end of what is paid. Ages ascend."""
    kept = []
    for age in ages:
        if surplus and age >= least and age % unit == 0:
            surplus -= 1
        else:
            kept.append(age)
    return kept


def _served(ages: list[int], rate: float, late: float) -> float:
    """Engines of one age begin together; ages ascend, so the oldest are counted first."""
    served, before = 0.0, 0.0
    starting = [age for age in ages if age < late]
    count = len(ages) - len(starting)
    for age in reversed(starting):
        begins = min(1.0, late - age)
        served += (begins - before) * min(rate, count)
        before, count = begins, count + 1
    return served + (1 - before) * min(rate, count)


def fixed(series: Series) -> tuple[Bill, int]:
    """The constant number that would have cost least; it was there before."""
    counted = slice(series.counted_from, None)
    rates, prices, rents = series.rates[counted], series.prices[counted], series.rents[counted]
    hours = series.step_s / 3600
    totals = [
        float((count * rents + prices * np.maximum(0.0, rates - count)).sum() * hours)
        for count in range(ceil(rates.max()) + 2)
    ]
    best = int(np.argmin(totals))
    return Bill(totals[best], 0), best


def clairvoyant(series: Series, billing: RentRule, engines: list[int] | None = None) -> Bill:
    """The cheapest plan with all of the series known, engine by engine, by dynamic programming.

    By the second nobody can spend less under these assumptions. By the hour engines of one pool can
    stand in for each other at their ends, which this leaves out: there it is no lower bound.
    `engines` gets how many run in each step.
    """
    late = billing.start_s / series.step_s
    unit = max(1, billing.unit_s // series.step_s)
    oldest = max(1, round(billing.least_s / series.step_s), ceil(late))
    oldest = -(-oldest // unit) * unit
    following = np.minimum(np.arange(oldest + 1) + 1, oldest)
    following[oldest] = oldest - unit + 1
    part = np.clip(np.arange(oldest + 1) + 1 - late, 0, 1)[:, None]
    places = np.arange(ceil(series.rates.max()) + 1)
    steps = len(series.rates)
    off, on = np.zeros(len(places)), np.zeros((oldest + 1, len(places)))
    start, stop = (np.zeros((steps, len(places)), bool) for _ in range(2))
    for step in range(steps - 1, -1, -1):
        slices = np.clip(series.rates[step] - places, 0, 1)[None, :]
        staying = series.prices[step] * slices * part - series.rents[step] + on[following]
        start[step], stop[step] = staying[0] > off, off > staying[oldest]
        renewed = np.maximum(staying[0], off)
        staying[oldest] = np.maximum(staying[oldest], off)
        off, on = renewed, staying
    return _replayed(series, following, part[:, 0], start, stop, [] if engines is None else engines)


def _replayed(
    series: Series,
    following: np.ndarray,
    part: np.ndarray,
    start: np.ndarray,
    stop: np.ndarray,
    engines: list[int],
) -> Bill:
    oldest, places = len(following) - 1, np.arange(start.shape[1])
    ages = np.full(start.shape[1], -1)
    total, starts, hours = 0.0, 0, series.step_s / 3600
    for step, rate in enumerate(series.rates):
        ends = (ages == oldest) & stop[step]
        begins = (ages < 0) & start[step]
        ages[ends] = -1
        ages[begins] = 0
        running = ages >= 0
        engines.append(int(running.sum()))
        served = np.clip(rate - places, 0, 1) * np.where(running, part[np.maximum(ages, 0)], 0)
        if step >= series.counted_from:
            bought = rate - served.sum()
            spent = running.sum() * series.rents[step] + series.prices[step] * bought
            total += float(spent) * hours
            starts += int(begins.sum())
        ages[running] = following[ages[running]]
    return Bill(total, starts)
