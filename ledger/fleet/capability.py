"""The capacity of pools inside the SLO over a span: one figure, and its source.

The step-time model of a pool's engines gives a rate at the observed traffic (`capacity`). Observed
spill checks it: engines even out bursts over 1 to 60 minutes, so the overflow computed with that
rate has a range. If the spill is inside the range, the rate holds. If it is above and frequent
enough, the capacity is the one that explains it. If it is below, more was served than the rate
allows, and the served tokens count. Without a measured rate, the busiest minutes are a lower bound.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from heapq import nlargest

from ledger.economics.cost import TokenBasis, Volume
from ledger.economics.step_cost import (
    WINDOWS_MINUTES,
    explaining_capacity,
    fitted_window,
    overflow,
    sum_windows,
)
from ledger.fleet.bills import PoolBill
from ledger.fleet.capacity import TrafficSums, rate_of
from ledger.fleet.pool_records import CapacityRow, PoolLoad
from ledger.spans import HOUR_US, MINUTE_US

BUSY_MINUTES = 5  # the lower bound of a capacity is the mean of this many busiest minutes
# With fewer requests, the mean of tokens is off by more than a fifth (the spread is about the
# mean, divided by the root of 30). With fewer minutes, only the shape of one burst is observed.
TELLING_REQUESTS = 30
TELLING_MINUTES = 5
SECONDS_PER_MINUTE = 60
MINUTES_PER_HOUR = 60


class CapabilitySource(StrEnum):
    """The source of a capacity figure, best first."""

    MEASURED = "measured"  # step times, at the observed traffic
    SERVED = "served"  # engines served more than step times allow
    SPILLS = "spills"  # the capacity that explains the spill
    FLOOR = "floor"  # observed to be served; the capacity may be higher


@dataclass(frozen=True, slots=True)
class FleetCapability:
    """Tokens that could have been served inside the SLO in the span."""

    volume: Volume
    known: CapabilitySource
    spilled_requests: int = 0  # for lack of capacity, in the span


@dataclass(frozen=True, slots=True)
class PoolCapability:
    """The capacity of one pool, and how it was found.

    `per_minute` is tokens of all its engines while available, counted in windows of
    `window_minutes`. `measured_per_minute` comes from step times alone. `decodes` is the kind of
    its traffic: volumes of different kinds cannot replace each other.
    """

    capability: FleetCapability
    per_minute: Fraction
    window_minutes: int
    measured_per_minute: Fraction | None
    decodes: bool
    spills_tell: bool = False  # enough spilled, and often enough

    @property
    def known(self) -> CapabilitySource:
        return self.capability.known


def pool_capability(
    bill: PoolBill,
    rows: Sequence[CapacityRow],
    traffic: TrafficSums,
    asked: PoolLoad,
    *,
    span_end_us: int,
    basis: TokenBasis,
) -> PoolCapability | None:
    """Return a pool's capacity, `None` if nothing was requested or no rate is known.

    `asked` and `traffic` must cover all teams.
    """
    load = load_of(asked, bill, span_end_us)
    if not any(load):
        return None
    measured = _measured_rate(bill, rows, traffic, basis)
    rate = floor(asked) if measured is None else measured
    overflowed = sum(asked.spilled)
    known = CapabilitySource.FLOOR if measured is None else CapabilitySource.MEASURED
    window = WINDOWS_MINUTES[0]
    shortest, longest = (overflow(load, rate, width) for width in _window_bounds())
    enough = is_significant(asked)
    if overflowed > shortest and enough:
        known, rate = CapabilitySource.SPILLS, explaining_capacity(load, overflowed)
    elif overflowed < longest and (enough or measured is not None):
        known = CapabilitySource.SPILLS if measured is None else CapabilitySource.SERVED
        window = WINDOWS_MINUTES[-1]
        rate = explaining_capacity(sum_windows(load, window), overflowed) / window
    else:
        window = fitted_window(load, capacity_per_minute=rate, overflowed=overflowed)
    if not rate:
        return None
    tokens = rate * MINUTES_PER_HOUR * bill.hours * bill.available_share
    requests = sum(asked.spilled_requests)
    able = FleetCapability(Volume(tokens, basis), known, requests)
    return PoolCapability(able, rate, window, measured, traffic.decodes, enough)


def combine_pools(
    pools: Mapping[str, PoolCapability | None],
    served: Mapping[str, int],
    basis: TokenBasis,
    *,
    kinds: Mapping[str, frozenset[str] | None] | None = None,
) -> FleetCapability | None:
    """Return the capacity of all pools together, at the mix of their traffic.

    Decoding pools can serve each other's requests, so their volumes add up. The same holds for
    embedding pools and for ranking pools (`kinds`: the kinds of each pool). Between kinds the mix
    is fixed: the kind that is full first limits the total. A pool without requests adds nothing.
    """
    found = [capability for capability in pools.values() if capability is not None]
    if not found:
        return None
    whole = sum(served.get(pool, 0) for pool in pools)
    scales = []
    groups = {
        pool: _group(capability, (kinds or {}).get(pool))
        for pool, capability in pools.items()
        if capability
    }
    for group in sorted(set(groups.values())):
        kind = {
            p: capability
            for p, capability in pools.items()
            if capability is not None and groups[p] == group
        }
        volume = sum(served.get(pool, 0) for pool in kind)
        capacity = sum(
            (Fraction(capability.capability.volume.tokens) for capability in kind.values()),
            Fraction(0),
        )
        if volume:
            scales.append(capacity / volume)
    if not scales:
        return None
    order = list(CapabilitySource)
    known = max((pool.known for pool in found), key=order.index)
    requests = sum(pool.capability.spilled_requests for pool in found)
    return FleetCapability(Volume(whole * min(scales), basis), known, requests)


def _group(pool: PoolCapability, kinds: frozenset[str] | None) -> str:
    """Return the group of pools that can serve each other's requests."""
    return "" if pool.decodes else ",".join(sorted(kinds or ("embedding",)))


def is_significant(load: PoolLoad) -> bool:
    """Return whether enough requests spilled, in enough minutes, to estimate capacity."""
    counts = load.spilled_requests
    return sum(counts) >= TELLING_REQUESTS and len(counts) - counts.count(0) >= TELLING_MINUTES


def load_of(load: PoolLoad, bill: PoolBill, span_end_us: int) -> list[int]:
    """Return the tokens requested in every minute of the billed hours, in time order.

    Quiet minutes are zeros.
    """
    if not load.seen:
        return []
    first = min(load.start_us, span_end_us - int(bill.hours * HOUR_US))
    early = (load.start_us - first) // MINUTE_US
    found = [0] * early + list(load.asked)
    return found + [0] * (int(bill.hours * MINUTES_PER_HOUR) - len(found))


def floor(load: PoolLoad) -> Fraction:
    """Return tokens per minute that a pool was observed to serve inside its SLO."""
    busiest = nlargest(min(BUSY_MINUTES, load.seen), load.served)
    return Fraction(sum(busiest), len(busiest)) if busiest else Fraction(0)


def _output(basis: TokenBasis) -> bool:
    return basis is TokenBasis.OUTPUT


def _measured_rate(
    bill: PoolBill, rows: Sequence[CapacityRow], traffic: TrafficSums, basis: TokenBasis
) -> Fraction | None:
    """Return tokens per minute by step times: the engines' mean, times the replicas."""
    engines = [row.measured for row in rows if row.pool == bill.pool]
    rates = [None if engine is None else rate_of(engine, traffic) for engine in engines]
    known = [
        rate.output_tokens_per_s + (0.0 if _output(basis) else rate.input_tokens_per_s)
        for rate in rates
        if rate is not None
    ]
    if not known or len(known) < len(rates):
        return None
    mean = Fraction(sum(known) / len(known)).limit_denominator(10**6)
    return mean * bill.replicas * SECONDS_PER_MINUTE


def _window_bounds() -> tuple[int, int]:
    return WINDOWS_MINUTES[0], WINDOWS_MINUTES[-1]
