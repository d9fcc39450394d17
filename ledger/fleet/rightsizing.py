"""Other GPUs for the same load: how many of each kind would carry it, and what a month of them is.

A kind that was not measured with this model is scaled from the engines that were, by memory
bandwidth, which decoding waits for, as in `market.estimate`. An engine needs at least the memory it
has now, so that weights and cache fit: of a smaller kind it takes several. As many are taken as
leave no more overflow than there is today. That is where to look, not what to buy: `engine bench`
on one of them says what it does.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from ledger.economics.cost import HOURS_OF_A_MONTH, Exact
from ledger.economics.step_cost import LoadCurve
from ledger.fleet.market import GpuOffer

MOST_ENGINES = 4096  # beyond it nothing carries the load


@dataclass(frozen=True, slots=True)
class GpuOption:
    """Engines of one kind. `per_engine`: tokens a window inside the SLO, as the load's windows."""

    gpu: GpuOffer
    gpus_per_engine: Exact
    engines: int
    per_engine: Exact


@dataclass(frozen=True, slots=True)
class GpuOptionCost:
    """`scaled`: an engine's speed beside that of one today; `pusd_per_month` at the low rate."""

    gpu: GpuOffer
    engines: int
    gpus: int
    scaled: Fraction
    pusd_per_month: int | None


def sizes(today: GpuOption, load: LoadCurve, known: Iterable[GpuOffer]) -> list[GpuOptionCost]:
    """Return every other kind that could serve, the cheapest first, those without a rate last."""
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
    """The fewest engines that leave no more overflow than this; `None` beyond `MOST_ENGINES`."""
    counts = range(1, MOST_ENGINES + 1)
    place = bisect_left(
        counts, True, key=lambda n: load.overflow(n * per_engine, volume=load.total) <= spilled
    )
    return counts[place] if place < len(counts) else None
