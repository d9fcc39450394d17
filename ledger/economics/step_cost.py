"""GPUs come whole: cost against volume is a staircase plus the API cost of what overflows.

Overflow is summed minute by minute over the period's real load curve, because monthly totals
flatter GPUs: a quiet night cannot serve a busy noon. For every N the total is `F(N)` plus the
overflow at the API's average price. As the load grows in proportion, more GPUs only ever become
better relative to fewer, so two totals cross at most once and the best N never falls: that is
what makes the bands below exact.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from operator import sub

from ledger.economics.cost import Exact, UnitPrice, same_basis
from ledger.economics.cost import Volume as Tokens

WINDOWS_MINUTES = range(1, 61)
VOLUME_LIMIT_TOKENS = 10**18  # beyond any period; bounds the search for a crossing


@dataclass(frozen=True, slots=True)
class LoadCurve:
    """Tokens asked for in each minute of a period, sorted, with running sums."""

    minutes: tuple[int, ...]
    sums: tuple[int, ...]

    @property
    def total(self) -> int:
        return self.sums[-1]

    def overflow(self, capacity_per_minute: Exact, *, volume: Exact) -> Fraction:
        """Tokens above the capacity when this curve is scaled to `volume` tokens in all."""
        if volume <= 0:
            return Fraction(0)
        scale = Fraction(volume) / self.total
        first = bisect_right(self.minutes, capacity_per_minute // scale)
        return self._from(first) * scale - (len(self.minutes) - first) * Fraction(
            capacity_per_minute
        )

    def _from(self, first: int) -> int:
        """Tokens of the minutes from this place on."""
        return self.total - (self.sums[first - 1] if first else 0)


@dataclass(frozen=True, slots=True)
class StepCost:
    """Cost of a period at N GPUs. `other_pusd` (ops, overhead) is paid once there is any GPU."""

    gpu_pusd: Exact  # one GPU for the period
    other_pusd: Exact
    spares: int  # redundancy: paid for, adds no capacity
    capacity_per_minute: Exact  # tokens of one GPU inside the SLO
    api: UnitPrice  # what an overflowing token costs
    load: LoadCurve

    def fixed_pusd(self, gpus: int) -> Exact:
        """F(N): nothing at N = 0, else N GPUs, the spares and what does not scale."""
        return (gpus + self.spares) * self.gpu_pusd + self.other_pusd if gpus else 0

    def total_pusd(self, gpus: int, volume: Tokens) -> Exact:
        same_basis(volume, self.api)
        spilled = self.load.overflow(gpus * self.capacity_per_minute, volume=volume.tokens)
        return self.fixed_pusd(gpus) + spilled * self.api.pusd_per_token


@dataclass(frozen=True, slots=True)
class GpuCountBand:
    """`gpus` is the cheapest number from `start` up to below `end` tokens (`None`: no end)."""

    gpus: int
    start: int
    end: int | None


@dataclass(frozen=True, slots=True)
class SizingAdvice:
    """The best number of GPUs at a volume, its cost, and where the next step is."""

    gpus: int
    total_pusd: Exact
    band: GpuCountBand


def load_curve(tokens_per_minute: Iterable[int]) -> LoadCurve:
    """A curve of the minutes of a period, quiet ones included (pass their zeros)."""
    minutes = tuple(sorted(tokens_per_minute))
    if not minutes or minutes[0] < 0 or minutes[-1] <= 0:
        raise ValueError("a load curve needs minutes, none negative, with some tokens")
    return LoadCurve(minutes, tuple(accumulate(minutes)))


def explaining_capacity(loads: Sequence[int], overflowed: int) -> Fraction:
    """The capacity of a minute, or window, at which just so many of these tokens overflow.

    Overflow falls from all tokens to none as the capacity rises, in straight pieces between the
    loads, ever less steeply: from below, the zero of the piece at hand never lies too high.
    """
    if not 0 <= overflowed <= sum(loads):
        raise ValueError("what overflowed is a part of the load")
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
    """The load in windows of several minutes; a last, shorter one counts as whole."""
    if minutes == 1:
        return [*tokens_per_minute]
    return _windows([0, *accumulate(tokens_per_minute)], minutes)


def _windows(sums: Sequence[int], minutes: int) -> list[int]:
    """Of running sums that begin with zero."""
    ends = [*sums[minutes::minutes]]
    if (len(sums) - 1) % minutes:
        ends.append(sums[-1])
    return list(map(sub, ends, sums[::minutes]))


def overflow(tokens_per_minute: Sequence[int], per_minute: Exact, minutes: int) -> Fraction:
    """Tokens above a capacity, in windows of so many minutes: as `LoadCurve.overflow` has it."""
    return _above(sum_windows(tokens_per_minute, minutes), Fraction(per_minute) * minutes)


def _above(loads: Sequence[int], capacity: Fraction) -> Fraction:
    least = capacity // 1
    over = [load for load in loads if load > least]
    return sum(over) - len(over) * capacity


def fitted_window(
    tokens_per_minute: Sequence[int], *, capacity_per_minute: Exact, overflowed: Exact
) -> int:
    """Minutes over which engines evened out bursts: the window that explains what overflowed.

    A request works for longer than the minute it arrived in, and a burst may wait within its SLO,
    so a strict minute can overstate the overflow. The observed overflow decides.
    """
    sums = [0, *accumulate(tokens_per_minute)]

    def miss(minutes: int) -> Fraction:
        capacity = Fraction(capacity_per_minute) * minutes
        return abs(_above(_windows(sums, minutes), capacity) - overflowed)

    return min(WINDOWS_MINUTES, key=lambda minutes: (miss(minutes), minutes))


def best(staircase: StepCost, volume: Tokens, *, most_gpus: int) -> SizingAdvice:
    """The cheapest N at a volume; on a tie the smaller."""
    gpus = min(range(most_gpus + 1), key=lambda n: (staircase.total_pusd(n, volume), n))
    ladder = bands(staircase, most_gpus=most_gpus)
    at = max((band for band in ladder if band.start <= volume.tokens), key=lambda b: b.start)
    return SizingAdvice(gpus, staircase.total_pusd(gpus, volume), at)


def break_even(staircase: StepCost, gpus: int, api: UnitPrice) -> Fraction | None:
    """The least volume at which `gpus` cost no more than buying all of it; `None`: there is none.

    Own cost less API cost is convex in the volume, in straight pieces between the volumes at which
    another minute fills up; so the piece in which it first reaches zero is searched for.
    """
    same_basis(api, staircase.api)
    load, price = staircase.load, Fraction(api.pusd_per_token)
    room = gpus * Fraction(staircase.capacity_per_minute)
    fixed = Fraction(staircase.fixed_pusd(gpus))
    fills = sorted({minute for minute in load.minutes if minute}, reverse=True)

    def behind(volume: Exact) -> Fraction:
        return staircase.total_pusd(gpus, Tokens(volume, api.basis)) - volume * price

    def slope(full: int) -> Fraction:
        """Of the piece in which the minutes of the `full` greatest loads overflow."""
        first = bisect_left(load.minutes, fills[full - 1]) if full else len(load.minutes)
        above = load.total - (load.sums[first - 1] if first else 0)
        return Fraction(above, load.total) * Fraction(staircase.api.pusd_per_token) - price

    def start(full: int) -> Fraction:
        return load.total * room / fills[full - 1] if full else Fraction(0)

    def has_ended(full: int) -> bool:
        """Whether the next piece is too late: zero was reached, or nothing is gained from here."""
        return behind(start(full)) <= 0 or slope(full) >= 0

    if fixed <= 0:
        return Fraction(0)
    piece = bisect_left(range(len(fills) + 1), True, key=has_ended)
    if piece <= len(fills) and behind(start(piece)) > 0:
        return None
    begin = start(piece - 1)
    return begin + behind(begin) / -slope(piece - 1)


def bands(staircase: StepCost, *, most_gpus: int) -> tuple[GpuCountBand, ...]:
    """For which volumes each N is cheapest: the lower envelope of the N totals, to the token."""
    found: list[GpuCountBand] = []
    gpus, start = 0, 0
    while True:
        steps = [
            (crossing, staircase.total_pusd(more, Tokens(crossing, staircase.api.basis)), more)
            for more in range(gpus + 1, most_gpus + 1)
            if (crossing := _crossing(staircase, gpus, more, start)) is not None
        ]
        if not steps:
            found.append(GpuCountBand(gpus, start, None))
            return tuple(found)
        crossing, _, step = min(steps)
        found.append(GpuCountBand(gpus, start, crossing))
        gpus, start = step, crossing


def _crossing(staircase: StepCost, fewer: int, more: int, start: int) -> int | None:
    """The least volume from `start` on at which `more` GPUs are cheaper than `fewer`."""
    basis = staircase.api.basis

    def cheaper(tokens: int) -> bool:
        volume = Tokens(tokens, basis)
        return staircase.total_pusd(more, volume) < staircase.total_pusd(fewer, volume)

    low, high = start - 1, max(start, staircase.load.total)
    while not cheaper(high):
        low, high = high, high * 2
        if high > VOLUME_LIMIT_TOKENS:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if cheaper(middle):
            high = middle
        else:
            low = middle
    return high
