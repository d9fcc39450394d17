"""A survey's load and bill as a staircase, restated per month of 720 hours.

The staircase is computed for the period (its own minutes, its own bill) and every volume and
amount is multiplied by `scale` when shown, so that a day's traffic and a month's read alike. At
today's volume and engines the total is what the books say: the bill and what overflow cost.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

from dashboard import formatting
from dashboard.figures import dollars
from ledger.economics.cost import HOURS_OF_A_MONTH, Exact, Volume
from ledger.economics.step_cost import (
    GpuCountBand,
    SizingAdvice,
    StepCost,
    bands,
    best,
    break_even,
    load_curve,
    sum_windows,
)
from ledger.fleet.bills import PoolBill
from ledger.fleet.capability import PoolCapability
from ledger.reports.fleet_economics import (
    ComparatorKind,
    ComparatorResult,
    FleetEconomics,
    with_spares,
)
from ledger.reports.overflow_price import OverflowPrice
from ledger.reports.survey import Survey

POINTS = 60
MOST_STEPS = 8
ENGINE = formatting.Hardware("engine", "engines")


class ChartReach(StrEnum):
    """How far the chart goes."""

    TODAY = "around today"
    CAPACITY = "up to capacity"


@dataclass(frozen=True, slots=True)
class LineCrossing:
    """Where the own line meets this comparator's: tokens asked in the period, `None` nowhere."""

    verdict: ComparatorResult
    asked: Fraction | None


@dataclass(frozen=True, slots=True)
class VolumeSteps:
    """One pool. `volume`, `capacity` and amounts are of the period; `scale` makes them monthly."""

    standing: FleetEconomics  # of the pool alone
    capability: PoolCapability
    staircase: StepCost
    gpu_type: str
    gpus: int  # steps in use: replicas
    gpus_per_step: Fraction
    shared: bool  # a step is an engine on a part of a machine
    scale: Fraction
    volume: int  # asked of the pool
    meetings: tuple[LineCrossing, ...]
    bands: tuple[GpuCountBand, ...]
    best: SizingAdvice
    configured_pusd: Exact

    @property
    def capacity(self) -> Exact:
        return self.capability.capability.volume.tokens

    @property
    def overflow(self) -> Fraction:
        """Of what is asked, the tokens that this model sends to the API."""
        room = self.gpus * self.staircase.capacity_per_minute
        return self.staircase.load.overflow(room, volume=self.volume)

    @property
    def hardware(self) -> formatting.Hardware:
        return ENGINE if self.shared else formatting.hardware([self.gpu_type])

    def unit(self, steps: int) -> str:
        if self.shared:
            return f"{steps} {ENGINE.single if steps == 1 else ENGINE.many}"
        return formatting.hardware_count(self.gpu_type, steps * self.gpus_per_step)

    def paid(self, steps: int) -> str:
        """The steps and the spares that are paid for beside them."""
        return f"{self.unit(steps)}{self.and_spares}" if steps else f"no own {self.hardware.single}"

    @property
    def and_spares(self) -> str:
        spares = self.staircase.spares
        return f" + {spares} {'spare' if spares == 1 else 'spares'}" if spares else ""

    @property
    def share(self) -> str | None:
        """What of a machine one engine is charged, where it is not all of it."""
        each = formatting.hardware_count(self.gpu_type, self.gpus_per_step)
        return f"One engine is charged {each}." if self.shared else None


def ladder(survey: Survey, pool: str, bought_at: str, *, spares: int) -> VolumeSteps | None:
    """`None` when the pool has neither load, rate nor capacity to draw with.

    `bought_at` names one of the pool's prices of overflow.
    """
    look = survey.pools[pool]
    (bill,) = look.standing.bills
    price = next((named for named in look.overflow if named.name == bought_at), None)
    able = look.capability
    if price is None or not bill.is_rated or not bill.hours or able is None or not any(look.load):
        return None
    steps = _staircase(look.load, bill, able, price, spares)
    volume = Volume(steps.load.total, price.average.basis)
    most = max(MOST_STEPS, 2 * bill.replicas)
    return VolumeSteps(
        standing=look.standing,
        capability=able,
        staircase=steps,
        gpu_type=bill.gpu_type,
        gpus=bill.replicas,
        gpus_per_step=bill.gpus // bill.replicas * bill.share,
        shared=bill.share < 1,
        scale=HOURS_OF_A_MONTH / bill.hours,
        volume=steps.load.total,
        meetings=tuple(
            LineCrossing(with_spare, _where(steps, bill.replicas, with_spare, able))
            for with_spare in with_spares(look.standing, spares)
            if with_spare.average is not None
        ),
        bands=bands(steps, most_gpus=most),
        best=best(steps, volume, most_gpus=most),
        configured_pusd=steps.total_pusd(bill.replicas, volume),
    )


def _staircase(
    load: Sequence[int], bill: PoolBill, able: PoolCapability, price: OverflowPrice, spares: int
) -> StepCost:
    """What overflow cost beyond what the capacity explains does not scale; it may be below zero."""
    window = able.window_minutes
    steps = StepCost(
        gpu_pusd=Fraction(bill.bill_pusd, bill.replicas),
        other_pusd=bill.ops_pusd,
        spares=spares,
        capacity_per_minute=able.per_minute / bill.replicas * window,
        api=price.average,
        load=load_curve(sum_windows(load, window)),
    )
    room = bill.replicas * steps.capacity_per_minute
    explained = steps.load.overflow(room, volume=steps.load.total) * price.average.pusd_per_token
    return replace(steps, other_pusd=bill.ops_pusd + price.pusd - explained)


def _where(
    steps: StepCost, gpus: int, verdict: ComparatorResult, able: PoolCapability
) -> Fraction | None:
    """The volume asked at which the lines meet, if that is within reach and within sight."""
    if verdict.average is None or verdict.even is None or not verdict.even.feasible:
        return None
    asked = break_even(steps, gpus, verdict.average)
    capacity = Fraction(able.capability.volume.tokens)
    return asked if asked is not None and asked <= _sight(steps.load.total, capacity) else None


def _sight(volume: Exact, capacity: Exact) -> Fraction:
    """The widest chart's right edge: beyond it nearly all that is asked would be bought."""
    return max(Fraction(volume), Fraction(capacity)) * Fraction(5, 4)


def curves(
    steps: VolumeSteps, colours: dict[ComparatorKind, str], reach: ChartReach
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Every line of the chart as points, and the colour of each."""
    basis = steps.standing.served.basis
    end = _end(steps, reach)
    records: list[dict[str, Any]] = []
    palette: dict[str, str] = {}
    for verdict in steps.standing.verdicts:
        if verdict.average is None:
            continue
        name = f"API: {', '.join(verdict.comparators)}"
        palette[name] = colours[verdict.against]
        price = verdict.average.pusd_per_token
        records += [_point(steps, at, at * price, name) for at in (Fraction(0), end)]
    own, ideal = f"own, {steps.paid(steps.gpus)}", f"own, best number of {steps.hardware.many}"
    palette |= {own: "#0F766E", ideal: "#6FB5AC"}
    numbers = sorted({band.gpus for band in steps.bands})
    for n in range(POINTS + 1):
        volume = Volume(end * n / POINTS, basis)
        records.append(
            _point(steps, volume.tokens, steps.staircase.total_pusd(steps.gpus, volume), own)
        )
        least = min(steps.staircase.total_pusd(number, volume) for number in numbers)
        records.append(_point(steps, volume.tokens, least, ideal, dash="yes"))
    return records, palette


def marks(steps: VolumeSteps, reach: ChartReach) -> list[dict[str, Any]]:
    """Where we are, and where own cost meets each API line within the chart."""
    here = _point(steps, steps.volume, steps.configured_pusd, "")
    found = [{**here, "label": "we are here", "sort": "here"}]
    end = _end(steps, reach)
    for meeting in steps.meetings:
        average = meeting.verdict.average
        if meeting.asked is not None and average is not None and meeting.asked <= end:
            cost = meeting.asked * Fraction(average.pusd_per_token)
            point = _point(steps, meeting.asked, cost, "")
            found.append({**point, "label": "break-even", "sort": "even"})
    return found


def _end(steps: VolumeSteps, reach: ChartReach) -> Fraction:
    """The chart's right edge, in tokens of the period.

    Around today: twice the volume and the nearest break-even, so that both are told apart. Up to
    capacity: everything that the engines could carry, however far.
    """
    evens = [meeting.asked for meeting in steps.meetings if meeting.asked is not None]
    volume = Fraction(steps.volume)
    if reach is ChartReach.TODAY:
        return 2 * max(volume, min(evens, default=volume))
    return _sight(volume, steps.capacity)


def _point(
    steps: VolumeSteps, volume: Exact, pusd: Exact, kind: str, *, dash: str = "no"
) -> dict[str, Any]:
    return {
        "volume": float(volume * steps.scale),
        "usd": dollars(float(pusd * steps.scale)),
        "kind": kind,
        "dash": dash,
    }
