"""Rates for the fleet bench, in engines: recorded shapes, drawn days and shocks.

A cell plays one series with one price and one start-up. Requests of a step are drawn (Poisson), but
at ten minutes, where the model of the recorded shapes has none. Without recorded traces a stand-in
is drawn, and its figures compare with nothing.
"""

import csv
import gzip
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import cos, exp, pi
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "traces"
WINDOW_S = 600
DAY_S = 86_400
SPARE = 0.85  # of an engine: load inside a step is not even
RENT = 2.50  # dollars an hour of one engine


@dataclass(frozen=True)
class Shape:
    """A rate's file, the mean that it is scaled to, and what a request is."""

    file: str
    mean: float
    tokens: tuple[int, int]
    engine: float  # requests a second of one engine inside its promise

    @property
    def usable(self) -> float:
        return self.engine * SPARE

    @property
    def nominal(self) -> float:
        """The API's price at $0.15 and $0.60 per million tokens, in break-even prices."""
        dollars = self.tokens[0] * 0.15e-6 + self.tokens[1] * 0.60e-6
        return dollars * self.usable * 3600 / RENT


SHAPES = {
    "m-small": Shape("servegen_m-small_rate10min", 150, (160, 22), 37.0),
    "m-large": Shape("servegen_m-large_rate10min", 120, (800, 200), 9.0),
    "deepseek-r1": Shape("servegen_deepseek-r1_rate10min", 20, (1320, 1510), 2.5),
}


@dataclass(frozen=True)
class Series:
    """Rates by step in engines, with prices by step in break-even prices and rents of one."""

    name: str
    step_s: int
    rates: np.ndarray
    prices: np.ndarray
    rents: np.ndarray
    usable: float  # requests a second of one engine
    counted_from: int  # the steps before are to learn from
    drawn: bool = False  # a stand-in for a recorded shape

    @property
    def days(self) -> float:
        return (len(self.rates) - self.counted_from) * self.step_s / DAY_S

    def priced(self, price: float) -> "Series":
        return replace(self, prices=np.full(len(self.rates), price))


def recorded(
    name: str, step_s: int, *, whole: bool = False, folder: Path = FOLDER, seed: int = 1
) -> Series:
    """A recorded shape in steps of `step_s`, the second half counted unless `whole`."""
    shape = SHAPES[name]
    rates, drawn = _read(folder / f"{shape.file}.csv.gz")
    rates = rates * shape.mean / rates.mean() / shape.usable
    found = drawn_requests(np.repeat(rates, WINDOW_S // step_s), shape.usable, step_s, seed)
    counted = 0 if whole else len(found) // 2
    ones = np.ones(len(found))
    return Series(name, step_s, found, shape.nominal * ones, ones, shape.usable, counted, drawn)


def drawn_requests(rates: np.ndarray, usable: float, step_s: int, seed: int) -> np.ndarray:
    if step_s >= WINDOW_S:
        return rates
    arrivals = np.random.default_rng(seed).poisson(rates * usable * step_s)
    return arrivals / (usable * step_s)


def shocks(step_s: int, price: float = 2.6, folder: Path = FOLDER) -> list[Series]:
    """Days with a shape, a step, a flash crowd, an outage of the API, and a spot market."""
    calm = _days(7, folder, noise=0.06)
    half = len(calm) // 2
    step = np.concatenate([np.full(half, 6.0), np.full(len(calm) - half, 12.0)])
    flash = calm.copy()
    for day in (1, 4, 5, 6):
        begin = day * 1440 + 600 + 37 * day
        flash[begin : begin + 20] *= 10
    prices = np.full(len(calm), price)
    outage = prices.copy()
    for day in (2, 5):
        outage[day * 1440 + 840 : day * 1440 + 900] *= 10
    return [
        _shock("day", calm, prices, None, step_s),
        _shock("step", step * _wobble(len(calm)), prices, None, step_s),
        _shock("flash crowd", flash, prices, None, step_s),
        _shock("API outage", calm, outage, None, step_s),
        _shock("spot market", calm, prices, _spot(len(calm)), step_s),
    ]


def _shock(
    name: str, minutes: np.ndarray, prices: np.ndarray, rents: np.ndarray | None, step_s: int
) -> Series:
    rents = np.ones(len(minutes)) if rents is None else rents
    if step_s >= 60:
        width = step_s // 60
        rates, prices, rents = (_means(row, width) for row in (minutes, prices, rents))
    else:
        rates, prices, rents = (np.repeat(row, 60 // step_s) for row in (minutes, prices, rents))
    rates = drawn_requests(rates, 7.65, step_s, 5)
    return Series(name, step_s, rates, prices, rents, 7.65, len(rates) // 2)


def _means(values: np.ndarray, width: int) -> np.ndarray:
    return values[: len(values) // width * width].reshape(-1, width).mean(axis=1)


def _days(days: int, folder: Path, noise: float) -> np.ndarray:
    """A day's shape by the minute on the minutes of a recorded hour."""
    hour, level, rng, found = _hour(folder), 0.0, random.Random(7), []
    for minute in range(days * 1440):
        level = 0.98 * level + rng.gauss(0, noise)
        shape = 8.0 * (1 - 0.6 * cos(2 * pi * (minute - 240) / 1440))
        found.append(shape * exp(level) * hour[minute % len(hour)])
    return np.array(found)


def _wobble(count: int) -> np.ndarray:
    level, rng, found = 0.0, random.Random(11), []
    for _ in range(count):
        level = 0.95 * level + rng.gauss(0, 0.03)
        found.append(exp(level))
    return np.array(found)


def _spot(count: int) -> np.ndarray:
    """A rent that moves, with hours in which it is dear: multiples of the rent on demand."""
    level, rng, found, dear = -1.0, random.Random(13), [], 0
    for minute in range(count):
        if minute % 10 == 0:
            level += 0.03 * (-0.9 - level) + rng.gauss(0, 0.06)
            dear = dear - 1 if dear else (12 if rng.random() < 0.006 else 0)
        found.append(min(1.0, exp(level)) * (4.0 if dear else 1.0))
    return np.array(found)


def _hour(folder: Path) -> Sequence[float]:
    path = folder / "azure2023_conv.csv.gz"
    if not path.exists():
        rng = random.Random(3)
        return [exp(rng.gauss(0, 0.1)) for _ in range(58)]
    counts = [0] * 58
    with gzip.open(path, "rt") as lines:
        for row in list(csv.reader(lines))[1:]:
            minute = int(float(row[0]) // 60)
            if minute < len(counts):
                counts[minute] += 1
    mean = sum(counts) / len(counts)
    return [count / mean for count in counts]


def _read(path: Path) -> tuple[np.ndarray, bool]:
    """The file's rates; a step without any between busy ones is a gap, and the last one holds."""
    if not path.exists():
        rng, level, found = random.Random(path.name), 0.0, []
        for step in range(1008):
            level = 0.9 * level + rng.gauss(0, 0.15)
            found.append(exp(level) * (1 - 0.4 * cos(2 * pi * step / 144)))
        return np.array(found), True
    with gzip.open(path, "rt") as lines:
        rates = [float(row[1]) for row in list(csv.reader(lines))[1:]]
    for place in range(1, len(rates)):
        if rates[place] == 0:
            rates[place] = rates[place - 1]
    return np.array(rates), False
