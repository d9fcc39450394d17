"""Other GPUs for the same load: the number that carries it, and its monthly cost.

A kind that was not measured with this model is scaled from measured engines by memory bandwidth,
which limits decoding, as in `market.estimate`. An engine needs at least its present memory for
weights and cache, so smaller GPUs are combined. The number is the smallest one without more
overflow than today. The result is a candidate, not advice to buy: run `engine bench` on such a GPU
to measure it.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from ledger.economics.cost import HOURS_OF_A_MONTH, Exact
from ledger.economics.step_cost import LoadCurve
from ledger.fleet.market import GpuOffer

MOST_ENGINES = 4096  # a kind that needs more is left out


@dataclass(frozen=True, slots=True)
class GpuOption:
    """Engines of one kind of GPU. `per_engine` is tokens inside the SLO per load window."""

    gpu: GpuOffer
    gpus_per_engine: Exact
    engines: int
    per_engine: Exact


@dataclass(frozen=True, slots=True)
class GpuOptionCost:
    """The number and cost of another kind of GPU.

    `scaled` is an engine's speed relative to one today. `pusd_per_month` is at the low rate.
    """

    gpu: GpuOffer
    engines: int
    gpus: int
    scaled: Fraction
    pusd_per_month: int | None


def sizes(today: GpuOption, load: LoadCurve, known: Iterable[GpuOffer]) -> list[GpuOptionCost]:
    """Return every other usable kind, cheapest first, kinds without a rate last."""
    spilled = load.overflow(today.engines * today.per_engine, volume=load.total)
    found = [
        size
        for gpu in known
        if gpu.name != today.gpu.name and (size := _size(today, load, gpu, spilled)) is not None
    ]
    return sorted(found, key=lambda cost: (cost.pusd_per_month is None, cost.pusd_per_month or 0))


def _size(
    today: GpuOption, load: LoadCurve, gpu: GpuOffer, spilled: Fraction
) -> GpuOptionCost | None:
    each = -(-today.gpus_per_engine * today.gpu.memory_gib // gpu.memory_gib)
    bandwidth = Fraction(today.gpus_per_engine) * today.gpu.bandwidth_bytes_s
    scaled = each * gpu.bandwidth_bytes_s / bandwidth
    engines = min_engines(load, Fraction(today.per_engine) * scaled, spilled)
    if engines is None:
        return None
    gpus, rate = int(engines * each), gpu.low_pusd_per_hour
    month = None if rate is None else gpus * rate * HOURS_OF_A_MONTH
    return GpuOptionCost(gpu, engines, gpus, scaled, month)


def min_engines(load: LoadCurve, per_engine: Fraction, spilled: Fraction) -> int | None:
    """Return the fewest engines without more overflow; `None` above `MOST_ENGINES`."""
    counts = range(1, MOST_ENGINES + 1)
    place = bisect_left(
        counts, True, key=lambda n: load.overflow(n * per_engine, volume=load.total) <= spilled
    )
    return counts[place] if place < len(counts) else None
