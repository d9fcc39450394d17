"""The cost of N GPUs in a period, with overflow counted by the minute.

Overflow is summed over the period's real load curve, because monthly totals favour GPUs: a quiet
night cannot serve a busy noon. This module prices one kind of traffic at one price, for a purchase.
The value of own pools' traffic is in `value_curve`.
"""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from operator import sub

from ledger.economics.cost import Exact, UnitPrice, same_basis
from ledger.economics.cost import Volume as Tokens

WINDOWS_MINUTES = range(1, 61)


@dataclass(frozen=True, slots=True)
class LoadCurve:
    """Tokens requested in each minute of a period, sorted, with running sums."""

    minutes: tuple[int, ...]
    sums: tuple[int, ...]

    @property
    def total(self) -> int:
        return self.sums[-1]

    def overflow(self, capacity_per_minute: Exact, *, volume: Exact) -> Fraction:
        """Return tokens above the capacity if this curve is scaled to `volume` tokens in total."""
        if volume <= 0:
            return Fraction(0)
        scale = Fraction(volume) / self.total
        first = bisect_right(self.minutes, capacity_per_minute // scale)
        return self._from(first) * scale - (len(self.minutes) - first) * Fraction(
            capacity_per_minute
        )

    def _from(self, first: int) -> int:
        """Return the sum of the minutes from this position on."""
        return self.total - (self.sums[first - 1] if first else 0)


@dataclass(frozen=True, slots=True)
class StepCost:
    """Cost of a period at N GPUs. `other_pusd` (ops, overhead) is due if there is any GPU."""

    gpu_pusd: Exact  # one GPU for the period
    other_pusd: Exact
    spares: int  # redundancy: paid for, adds no capacity
    capacity_per_minute: Exact  # tokens of one GPU inside the SLO
    api: UnitPrice  # price of an overflowing token
    load: LoadCurve

    def fixed_pusd(self, gpus: int) -> Exact:
        """Return F(N): 0 at N = 0, else the cost of N GPUs, the spares and `other_pusd`."""
        return (gpus + self.spares) * self.gpu_pusd + self.other_pusd if gpus else 0

    def total_pusd(self, gpus: int, volume: Tokens) -> Exact:
        same_basis(volume, self.api)
        spilled = self.load.overflow(gpus * self.capacity_per_minute, volume=volume.tokens)
        return self.fixed_pusd(gpus) + spilled * self.api.pusd_per_token


def load_curve(tokens_per_minute: Iterable[int]) -> LoadCurve:
    """Return the curve of a period's minutes. Quiet minutes must be passed as zeros."""
    minutes = tuple(sorted(tokens_per_minute))
    if not minutes or minutes[0] < 0 or minutes[-1] <= 0:
        raise ValueError(
            "a load curve needs minutes without negative values and at least one token"
        )
    return LoadCurve(minutes, tuple(accumulate(minutes)))


def explaining_capacity(loads: Sequence[int], overflowed: int) -> Fraction:
    """Return the capacity of a minute, or window, at which `overflowed` tokens overflow.

    Overflow is a convex, piecewise linear, falling function of the capacity. So Newton's method
    from 0 never goes past the solution.
    """
    if not 0 <= overflowed <= sum(loads):
        raise ValueError("the overflow must not exceed the load")
    over, capacity = [*loads], Fraction(0)
    while True:
        least = capacity // 1
        over = [load for load in over if load > least]
        if not over:
            return capacity
        found = Fraction(sum(over) - overflowed, len(over))
        if found == capacity:
            return capacity
        capacity = found


def sum_windows(tokens_per_minute: Sequence[int], minutes: int) -> list[int]:
    """Return the load in windows of several minutes. A shorter last window counts as whole."""
    if minutes == 1:
        return [*tokens_per_minute]
    return _windows([0, *accumulate(tokens_per_minute)], minutes)


def _windows(sums: Sequence[int], minutes: int) -> list[int]:
    """Return the sums of windows of `minutes` minutes, from running sums that begin with 0."""
    ends = [*sums[minutes::minutes]]
    if (len(sums) - 1) % minutes:
        ends.append(sums[-1])
    return list(map(sub, ends, sums[::minutes]))


def overflow(tokens_per_minute: Sequence[int], per_minute: Exact, minutes: int) -> Fraction:
    """Return tokens above a capacity, counted in windows of `minutes` minutes."""
    return _above(sum_windows(tokens_per_minute, minutes), Fraction(per_minute) * minutes)


def _above(loads: Sequence[int], capacity: Fraction) -> Fraction:
    least = capacity // 1
    over = [load for load in loads if load > least]
    return sum(over) - len(over) * capacity


def fitted_window(
    tokens_per_minute: Sequence[int], *, capacity_per_minute: Exact, overflowed: Exact
) -> int:
    """Return the minutes over which engines evened out bursts, from the observed overflow.

    A request runs for longer than its first minute, and a burst may wait within its SLO, so windows
    of one minute can overstate the overflow.
    """
    sums = [0, *accumulate(tokens_per_minute)]

    def miss(minutes: int) -> Fraction:
        capacity = Fraction(capacity_per_minute) * minutes
        return abs(_above(_windows(sums, minutes), capacity) - overflowed)

    return min(WINDOWS_MINUTES, key=lambda minutes: (miss(minutes), minutes))
