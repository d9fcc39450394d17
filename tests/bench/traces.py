"""Arrivals of the routing bench: recorded traces where they lie beside the checkout, or stand-ins.

A cell takes one or two traces, keeps a share of their requests by its seed, and scales time so that
they arrive at the rate it asks for; the burstiness stays the trace's. Stand-ins are drawn from the
published statistics and are said to be such: their figures compare with nothing.
"""

import csv
import gzip
import math
import random
from dataclasses import dataclass
from pathlib import Path

from gateway.whatif.traffic import Arrival

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "traces"
KEPT_SHARE = 0.9  # of a trace's requests, by the seed
Row = tuple[float, int, int]  # seconds, prompt tokens, output tokens


@dataclass(frozen=True)
class Source:
    """A recorded trace, and the statistics that its stand-in is drawn from.

    Lengths are lognormal: median and sigma. `burst`: requests that come together on average.
    """

    file: str
    rate: float
    prompt: tuple[float, float]
    output: tuple[float, float]
    burst: float


SOURCES = {
    "conv": Source("azure2023_conv", 5.53, (1020, 0.85), (129, 0.77), 1.1),
    "code": Source("azure2023_code", 2.57, (1469, 0.97), (13, 0.8), 25.0),
    "msmall": Source("derived_servegen_m-small_24h", 1.29, (90, 1.0), (12, 1.0), 1.5),
    "r1": Source("derived_servegen_deepseek-r1_24h", 0.8, (600, 1.2), (1000, 0.9), 1.5),
}


@dataclass(frozen=True)
class Load:
    """What a cell is fed with: traces with the models that their requests ask for, by weight."""

    traces: tuple[tuple[str, tuple[tuple[str, float], ...]], ...]
    rate: float  # requests per second, all traces together
    seconds: float
    most: int  # requests


class Traces:
    """Reads each trace once; `stand_in` when one of them had to be made up."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._read: dict[str, list[Row]] = {}
        self.stand_in = False

    def rows(self, name: str) -> list[Row]:
        if name not in self._read:
            path = self._folder / f"{SOURCES[name].file}.csv.gz"
            if path.exists():
                self._read[name] = _recorded(path)
            else:
                self.stand_in = True
                self._read[name] = drawn(SOURCES[name], random.Random(name))
        return self._read[name]

    def arrivals(self, load: Load, seed: int) -> list[Arrival]:
        rng = random.Random(seed)
        merged: list[tuple[float, int, int, str]] = []
        for name, models in load.traces:
            names, weights = [item for item, _ in models], [weight for _, weight in models]
            for at_s, prompt, output in self.rows(name):
                label = names[0] if len(names) == 1 else rng.choices(names, weights)[0]
                if rng.random() < KEPT_SHARE:
                    merged.append((at_s, prompt, output, label))
        merged.sort()
        first_s, span_s = merged[0][0], merged[-1][0] - merged[0][0]
        faster = load.rate / (len(merged) / span_s)
        found = []
        for at_s, prompt, output, label in merged[: load.most]:
            scaled_s = (at_s - first_s) / faster
            if scaled_s >= load.seconds:
                break
            found.append(Arrival(scaled_s, prompt, output, label, label))
        return found

    def poisson(self, load: Load, seed: int) -> list[Arrival]:
        """The same lengths without bursts: how a capacity is defined."""
        rng, at_s, found = random.Random(seed), 0.0, []
        for arrival in self.arrivals(load, seed):
            at_s += rng.expovariate(load.rate)
            found.append(arrival._replace(at_s=at_s))
        return found


def drawn(source: Source, rng: random.Random, count: int = 20_000) -> list[Row]:
    """A stand-in: groups of requests at once, so that the arrivals are as bursty."""
    rows: list[Row] = []
    at_s = 0.0
    while len(rows) < count:
        size = max(1, round(rng.expovariate(1.0 / source.burst)))
        at_s += rng.expovariate(source.rate / size)
        for _ in range(size):
            prompt, output = (
                max(1, round(middle * math.exp(sigma * rng.gauss(0.0, 1.0))))
                for middle, sigma in (source.prompt, source.output)
            )
            rows.append((at_s + rng.uniform(0.0, 0.05 * size), prompt, output))
    rows.sort()
    return rows


def _recorded(path: Path) -> list[Row]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as lines:
        return [
            (float(row["timestamp_s"]), int(row["input_tokens"]), max(1, int(row["output_tokens"])))
            for row in csv.DictReader(lines)
        ]
