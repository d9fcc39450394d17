"""The volume at which own engines pay for themselves, and whether they can serve it.

`V* = F / (a - v)`: the fixed cost of a period divided by the saving per token on an own engine. The
result holds only if the engines can serve V* inside their SLO (`V* <= C`, on the same token basis).
Otherwise the configuration cannot break even against that API, and `cures` states the changes that
would help, one input at a time. Money is exact pico-USD.
"""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction

from ledger.economics.cost import Exact, FixedCost, UnitPrice, Volume, gpu_cost, same_basis
from ledger.money import ceil_div


@dataclass(frozen=True, slots=True)
class FleetConfiguration:
    """Own engines of one kind over one period.

    `capacity_each` is the volume of one GPU inside the SLO in the period. `spares` are paid for and
    add no capacity (N + 1 redundancy). Ops and overhead do not grow with the number of GPUs.
    """

    gpus: int
    gpu_pusd_per_hour: Exact
    hours: Exact
    capacity_each: Volume
    ops_pusd: Exact = 0
    overhead_pusd: Exact = 0
    spares: Exact = 0

    @property
    def fixed(self) -> FixedCost:
        paid = self.gpus + self.spares
        gpu = gpu_cost(gpus=paid, pusd_per_hour=self.gpu_pusd_per_hour, hours=self.hours)
        return FixedCost(gpu, self.ops_pusd, self.overhead_pusd)

    @property
    def capacity(self) -> Volume:
        return Volume(self.gpus * self.capacity_each.tokens, self.capacity_each.basis)


class CostDriver(StrEnum):
    """A change that could make a configuration break even."""

    GPU_RATE = "gpu_rate"  # pay at most this per GPU-hour, pico-USD
    OPS = "ops"  # spend at most this on ops and overhead in the period, pico-USD
    API_PRICE = "api_price"  # serve traffic that avoids at least this per token, pico-USD
    CAPACITY = "capacity"  # serve at least this many tokens per GPU inside the SLO
    GPUS = "gpus"  # run at least this many GPUs, traffic permitting


@dataclass(frozen=True, slots=True)
class BreakEvenFix:
    """The value of one input at which V* = C, or `None` if no value of this input suffices."""

    lever: CostDriver
    needed: Exact | None


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The result of `assess`. `volume` is `None` if own engines save nothing per token.

    `cures` assume engines that serve all of `capacity`. `served_pusd_per_hour` is the highest rate
    per GPU-hour that the present volume pays for; `None` if there is no such rate or no volume was
    given.
    """

    volume: Volume | None
    capacity: Volume
    cures: tuple[BreakEvenFix, ...]
    served_pusd_per_hour: Exact | None = None

    @property
    def feasible(self) -> bool:
        return self.volume is not None and self.volume.tokens <= self.capacity.tokens


@dataclass(frozen=True, slots=True)
class BreakEvenPosition:
    """The result of a period: `ratio` is volume / V*, `result_pusd` its profit (< 0: a loss)."""

    volume: Volume
    ratio: Fraction | None
    result_pusd: Exact


def break_even_volume(
    *, fixed_pusd: Exact, avoided: UnitPrice, variable: UnitPrice | None = None
) -> Volume | None:
    """Return V* = F / (a - v). `variable` is v, the metered power per token, if any.

    `None` if a token on an own engine saves nothing.
    """
    saved = _saved_per_token(avoided, variable)
    if saved <= 0:
        return None
    return Volume(Fraction(fixed_pusd) / saved, avoided.basis)


def assess(
    configuration: FleetConfiguration,
    avoided: UnitPrice,
    variable: UnitPrice | None = None,
    *,
    served: Volume | None = None,
) -> BreakEven:
    """Return V*, the capacity, and changes that bring V* within it if it is not.

    `served` is the present volume, which is usually below the capacity.
    """
    capacity = configuration.capacity
    same_basis(avoided, capacity)
    fixed = configuration.fixed.total_pusd
    volume = break_even_volume(fixed_pusd=fixed, avoided=avoided, variable=variable)
    if volume is not None and volume.tokens <= capacity.tokens:
        return BreakEven(volume, capacity, ())
    saved = _saved_per_token(avoided, variable)
    today = None
    if served is not None:
        same_basis(avoided, served)
        today = _rate_paid_by(configuration, Fraction(served.tokens) * saved)
    return BreakEven(volume, capacity, _cures(configuration, avoided, saved), today)


def position(
    *, volume: Volume, fixed_pusd: Exact, avoided: UnitPrice, variable: UnitPrice | None = None
) -> BreakEvenPosition:
    """Return the profit at a volume in pico-USD, and the volume as a share of V*."""
    same_basis(volume, avoided)
    saved = _saved_per_token(avoided, variable)
    needed = break_even_volume(fixed_pusd=fixed_pusd, avoided=avoided, variable=variable)
    ratio = None if needed is None or not needed.tokens else volume.tokens / Fraction(needed.tokens)
    return BreakEvenPosition(volume, ratio, volume.tokens * saved - fixed_pusd)


def gpus_to_break_even(
    configuration: FleetConfiguration, avoided: UnitPrice, variable: UnitPrice | None = None
) -> int | None:
    """Return the least N with V*(N) <= C(N), or `None` if no number of GPUs suffices.

    Each GPU adds `C1 x (a - v)` of earnings at full load and the cost of one GPU. More GPUs help
    only if the earnings exceed the cost, because they spread ops and spares.
    """
    saved = _saved_per_token(avoided, variable)
    each = gpu_cost(
        gpus=1, pusd_per_hour=configuration.gpu_pusd_per_hour, hours=configuration.hours
    )
    surplus = Fraction(configuration.capacity_each.tokens) * saved - each
    if surplus <= 0:
        return None
    shared = configuration.ops_pusd + configuration.overhead_pusd + configuration.spares * each
    return max(1, ceil_div(Fraction(shared), surplus))


def _saved_per_token(avoided: UnitPrice, variable: UnitPrice | None) -> Fraction:
    if variable is None:
        return Fraction(avoided.pusd_per_token)
    same_basis(avoided, variable)
    return Fraction(avoided.pusd_per_token) - Fraction(variable.pusd_per_token)


def _rate_paid_by(configuration: FleetConfiguration, earned: Fraction) -> Fraction | None:
    """Return the rate per GPU-hour at which these earnings equal the fixed cost."""
    fixed = configuration.fixed
    paid_hours = (configuration.gpus + configuration.spares) * Fraction(configuration.hours)
    left = earned - fixed.ops_pusd - fixed.overhead_pusd
    return left / paid_hours if left > 0 and paid_hours else None


def _cures(
    configuration: FleetConfiguration, avoided: UnitPrice, saved: Fraction
) -> tuple[BreakEvenFix, ...]:
    fixed = configuration.fixed
    capacity = Fraction(configuration.capacity.tokens)
    earned = capacity * saved  # maximum earnings of the period
    ops_room = earned - fixed.gpu_pusd
    variable = Fraction(avoided.pusd_per_token) - saved
    needed_each = (
        fixed.total_pusd / saved / configuration.gpus if saved > 0 and configuration.gpus else None
    )
    net = UnitPrice(saved, avoided.basis)
    return (
        BreakEvenFix(CostDriver.GPU_RATE, _rate_paid_by(configuration, earned)),
        BreakEvenFix(CostDriver.OPS, ops_room if ops_room >= 0 else None),
        BreakEvenFix(
            CostDriver.API_PRICE, variable + fixed.total_pusd / capacity if capacity else None
        ),
        BreakEvenFix(CostDriver.CAPACITY, needed_each),
        BreakEvenFix(CostDriver.GPUS, gpus_to_break_even(configuration, net)),
    )
