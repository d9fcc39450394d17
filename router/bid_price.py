"""Bid price: the value of one engine-second of a pool, from the last 30 s of demand.

Every request that could have run in a pool counts, admitted or not, with the engine-seconds `r`
that it would take there and its value per engine-second `D = v/r`. `market_of` computes the price.
Demand is counted in bins of equal ratio, so memory is bounded. Each process adds `r` and 1 to its
own bins; the publisher of the price reads the sums of all processes once a tick. The window is the
difference of two readings. If a worker dies, its demand is missing for at most one window, which
makes the price too low, never too high.
"""

from collections import deque
from collections.abc import Sequence
from math import inf, log2
from operator import sub
from typing import NamedTuple

from router.deadlines import DEADLINES, deadline_bin, keepable_ms, tightest_ms
from router.types import Decision, Policy, RoutingRequest

WINDOW_S = 30.0
TICK_S = 1.0  # between two readings
FILL = 0.9  # of the engines' time that the knapsack may spend
BINS_PER_OCTAVE = 16
LEAST_OCTAVE = 18  # 2**18 pico-USD per engine-second: $0.001 an hour
OCTAVES = 32
BINS = BINS_PER_OCTAVE * OCTAVES
# Engine-seconds by bin, requests by bin, requests by deadline, engine-seconds not placed.
CELLS = 2 * BINS + DEADLINES + 1
UNPLACED = CELLS - 1
WIDE_SPREAD = 3.5  # D90/D10 from which unplaced demand reduces the time that counts

_TOP, _HIGH, _LOW = 0.98, 0.90, 0.10


class BidPrice(NamedTuple):
    """Bid price and top density (D98) in pico-USD per engine-second, and D90/D10 of a window.

    `tightest_ttft_ms` is defined in `router.deadlines`.
    """

    bid_price: float = 0.0
    top_density: float = 0.0
    density_spread: float = 1.0
    tightest_ttft_ms: float | None = None


UNKNOWN_MARKET = BidPrice()


class DemandSample(NamedTuple):
    """Demand of one request on a pool: its engine time, the value of a second, its deadline.

    `ttft_ms` is `None` if the request has no deadline that an engine of the pool could keep.
    `unplaced` is true if no engine of the pool could have kept its promises at that moment.
    """

    pool: str
    engine_seconds: float
    density: float
    ttft_ms: float | None = None
    unplaced: bool = False


def demand_of(decision: Decision, request: RoutingRequest, policy: Policy) -> list[DemandSample]:
    """Return the demand for each pool that could serve the request, at its best-ranked engine."""
    found: dict[str, DemandSample] = {}
    promised, prompt = policy.slo.ttft_ms, request.prompt_tokens
    for verdict in decision.verdicts:
        pool = verdict.candidate.pool
        if pool is None or pool in found:
            continue
        seconds, density = verdict.engine_seconds, verdict.density_pusd_per_s
        if seconds is not None and density is not None:
            ttft_ms = keepable_ms(promised, prompt, verdict.candidate.engine)
            found[pool] = DemandSample(pool, seconds, density, ttft_ms, not verdict.feasible)
    return list(found.values())


def bin_of(density: float) -> int:
    """Return the bin of a density; a density outside all bins counts in the outermost one."""
    if not density > 0.0:
        return 0
    if density == inf:
        return BINS - 1
    place = int(BINS_PER_OCTAVE * (log2(density) - LEAST_OCTAVE))
    return min(max(place, 0), BINS - 1)


def density_at(place: float) -> float:
    """Return the density at a position on the bin scale; whole numbers are lower bin edges."""
    return float(2.0 ** (LEAST_OCTAVE + place / BINS_PER_OCTAVE))


def market_of(
    seconds: Sequence[float],
    counts: Sequence[float],
    *,
    engine_seconds: float,
    unplaced_s: float = 0.0,
) -> BidPrice:
    """Return the bid price of a window: demand by bin, against the time that its engines had.

    `unplaced_s` are the engine-seconds of demand that no engine could place on arrival.

    With the whole window known in advance, the best use of the engines' time is the densest demand
    first, until the time is spent (a fractional knapsack). The price of a second is the density at
    which the time is spent:

        lambda = 0                          while the sum of r <= FILL * engine_seconds
        lambda = the D at which the sum of r, from the densest down, reaches that

    `FILL` leaves a tenth for what the window could not know. This price holds when an engine is
    full. `price_curve.bend_price` lowers it below full load, from the load, D98, and D90/D10 by
    number of requests. D90/D10 is wide where several comparators share the engines.

    Where D90/D10 is at least `WIDE_SPREAD`, only the time counts for which demand found an engine:
    TTFT promises leave less time than the engines have, and requests that arrive while the engines
    are full are not those of least value. A single price would turn away requests that fit later.

    Within a bin, demand counts as spread evenly over the logarithm, so that the price does not jump
    between edges. In the reference simulation (2026-11-20) windows of 5 to 600 s and fills of 0.6
    to 1.3 lay within 4 %; updates every 10 s cost 1 %, every 60 s up to 9 %.
    """
    total = sum(counts)
    if total <= 0.0:
        return UNKNOWN_MARKET
    asked = [(place, here) for place, here in enumerate(counts) if here > 0.0]  # few of the bins
    low = density_at(_quantile(asked, _LOW * total))
    high = density_at(_quantile(asked, _HIGH * total))
    top = density_at(_quantile(asked, _TOP * total))
    room_s = FILL * engine_seconds
    if unplaced_s > 0.0 and high >= WIDE_SPREAD * low:
        room_s = min(room_s, max(0.0, sum(seconds) - unplaced_s))
    return BidPrice(_price(seconds, room_s), top, high / low)


class DemandSums:
    """Demand sums of one process; additions are visible at the next reading."""

    __slots__ = ("_sums", "cells")

    def __init__(self) -> None:
        self.cells = [0.0] * CELLS
        self._sums: tuple[float, ...] | None = None

    def add(self, asked: DemandSample) -> None:
        self._sums = None
        place = bin_of(asked.density)
        self.cells[place] += asked.engine_seconds
        self.cells[BINS + place] += 1.0
        if asked.ttft_ms is not None:
            self.cells[2 * BINS + deadline_bin(asked.ttft_ms)] += 1.0
        if asked.unplaced:
            self.cells[UNPLACED] += asked.engine_seconds

    def sums(self) -> tuple[float, ...]:
        """Return the sums; the same object while nothing is added, for `DemandWindow`."""
        if self._sums is None:
            self._sums = tuple(self.cells)
        return self._sums


class DemandWindow:
    """The last `WINDOW_S` of one pool's demand, from readings of sums that only grow."""

    def __init__(self) -> None:
        self._readings: deque[tuple[float, Sequence[float]]] = deque()

    def read(self, sums: Sequence[float], now_s: float, *, engines: int) -> BidPrice:
        """Return the bid price of the window that ends with this reading.

        `sums` has `CELLS` values, added over all workers. `engines` counts those that serve now.
        """
        readings = self._readings
        readings.append((now_s, sums))
        while len(readings) > 2 and readings[1][0] <= now_s - WINDOW_S:
            readings.popleft()
        since_s, before = readings[0]
        if len(readings) > 1 and readings[1][1] is before:  # no demand, so no reading was needed
            since_s = max(since_s, min(readings[1][0], now_s - WINDOW_S))
        if now_s <= since_s or engines <= 0 or before is sums:
            return UNKNOWN_MARKET
        demand = [*map(sub, sums, before)]
        if min(demand) < 0.0:  # a worker died, so its sums are gone
            demand = [max(0.0, grown) for grown in demand]
        seconds, counts, deadlines = (
            demand[:BINS], demand[BINS : 2 * BINS], demand[2 * BINS : UNPLACED],
        )  # fmt: skip
        market = market_of(
            seconds, counts, engine_seconds=engines * (now_s - since_s),
            unplaced_s=demand[UNPLACED],
        )  # fmt: skip
        return market._replace(tightest_ttft_ms=tightest_ms(deadlines, sum(counts)))


def _price(seconds: Sequence[float], room_s: float) -> float:
    """Return the density at which the densest demand uses all of `room_s`; 0 if all fits."""
    if sum(seconds) <= room_s:
        return 0.0
    for place in range(len(seconds) - 1, -1, -1):
        here = seconds[place]
        if here > room_s:
            return density_at(place + 1.0 - room_s / here)
        room_s -= here
    return 0.0


def _quantile(asked: Sequence[tuple[int, float]], rank: float) -> float:
    """Return the position on the scale below which `rank` of the requests lie."""
    for place, here in asked:
        if here >= rank:
            return place + rank / here
        rank -= here
    return asked[-1][0] + 1.0
