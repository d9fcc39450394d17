"""A survey's load and bill as a staircase, restated per month of 720 hours.

The staircase is computed for the period (its own minutes, its own bill) and every volume and
amount is multiplied by `scale` when shown, so that a day's traffic and a month's read alike.
"""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import Any

from dashboard.figures import dollars
from ledger.bills import PoolBill
from ledger.economics import Exact, UnitPrice, Volume
from ledger.queries import HOUR_US, MINUTE_US
from ledger.staircase import (
    Advice,
    Band,
    Staircase,
    bands,
    best,
    fitted_window,
    load_curve,
    windowed,
)
from ledger.standing import HOURS_OF_A_MONTH, Against, Verdict
from ledger.survey import Survey, asked, floors, served

POINTS = 60
MOST_STEPS = 8
MINUTES_PER_HOUR = 60


class Reach(StrEnum):
    """How far the chart goes."""

    TODAY = "around today"
    CAPACITY = "up to capacity"


@dataclass(frozen=True, slots=True)
class Ladder:
    """`volume`, `capacity` and amounts are of the period; `scale` makes them monthly.

    `explained` is the modelled overflow of what runs over what really overflowed (`None`: nothing
    did). Well below one, engines spilled long before their measured capacity was reached.
    """

    staircase: Staircase
    gpus: int  # steps in use: replicas
    gpus_per_step: Fraction  # below one where pools share a GPU
    scale: Fraction
    volume: int  # asked of the pool
    capacity: Fraction | None
    measured: bool
    window_minutes: int
    explained: Fraction | None
    bands: tuple[Band, ...]
    best: Advice
    configured_pusd: Exact

    def unit(self, steps: int) -> str:
        gpus = steps * self.gpus_per_step
        return "1 GPU" if gpus == 1 else f"{float(gpus):g} GPUs"


def ladder(survey: Survey, pool: str, against: Against, *, spares: int) -> Ladder | None:
    """`None` when the pool has neither load, rate nor capacity to draw with."""
    bill = next(one for one in survey.standing.bills if one.pool == pool)
    verdict = next((one for one in survey.standing.verdicts if one.against is against), None)
    if verdict is None or verdict.average is None or bill.pusd_per_hour is None or not bill.hours:
        return None
    basis = survey.standing.served.basis
    load = _minutes(survey, bill, pool)
    capability = survey.standing.capability
    per_minute = _per_minute(survey, bill)
    if capability is None or not any(load) or not per_minute:
        return None
    overflowed = sum(asked(row, basis) - served(row, basis) for row in survey.minutes[pool])
    window = fitted_window(
        load, capacity_per_minute=per_minute * bill.replicas, overflowed=overflowed
    )
    each = bill.gpus // bill.replicas
    steps = Staircase(
        gpu_pusd=each * bill.pusd_per_hour * bill.hours,
        other_pusd=bill.ops_pusd,
        spares=spares,
        capacity_per_minute=per_minute * window,
        api=verdict.average,
        load=load_curve(windowed(load, window)),
    )
    volume = Volume(steps.load.total, basis)
    modelled = steps.load.overflow(bill.replicas * steps.capacity_per_minute, volume=volume.tokens)
    most = max(MOST_STEPS, 2 * bill.replicas)
    return Ladder(
        staircase=steps,
        gpus=bill.replicas,
        gpus_per_step=each * bill.share,
        scale=HOURS_OF_A_MONTH / bill.hours,
        volume=steps.load.total,
        capacity=per_minute
        * MINUTES_PER_HOUR
        * bill.hours
        * bill.replicas
        * HOURS_OF_A_MONTH
        / bill.hours,
        measured=capability.measured,
        window_minutes=window,
        explained=modelled / overflowed if overflowed else None,
        bands=bands(steps, most_gpus=most),
        best=best(steps, volume, most_gpus=most),
        configured_pusd=steps.total_pusd(bill.replicas, volume),
    )


def curves(
    survey: Survey, steps: Ladder, colours: dict[Against, str], reach: Reach
) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Every line of the chart as points, and the colour of each."""
    basis = survey.standing.served.basis
    end = _end(survey, steps, reach)
    records: list[dict[str, Any]] = []
    palette: dict[str, str] = {}
    for verdict in survey.standing.verdicts:
        if verdict.average is None:
            continue
        name = f"API: {', '.join(verdict.comparators)}"
        palette[name] = colours[verdict.against]
        price = verdict.average.pusd_per_token
        records += [_point(steps, at, at * price, name) for at in (Fraction(0), end)]
    own, ideal = f"own, {steps.unit(steps.gpus)}", "own, best number of GPUs"
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


def marks(survey: Survey, steps: Ladder, reach: Reach) -> list[dict[str, Any]]:
    """Where we are, and where own cost meets each API line within the chart."""
    here = _point(steps, steps.volume, steps.configured_pusd, "")
    found = [{**here, "label": "we are here", "sort": "here"}]
    end = _end(survey, steps, reach)
    for verdict in survey.standing.verdicts:
        meeting = _meeting(steps, verdict, end)
        if meeting is not None and verdict.average is not None:
            point = _point(steps, meeting, meeting * verdict.average.pusd_per_token, "")
            found.append({**point, "label": "break-even", "sort": "even"})
    return found


def _meeting(steps: Ladder, verdict: Verdict, end: Fraction) -> Fraction | None:
    """The least volume at which the configured GPUs cost no more than this API, by bisection."""
    assert verdict.average is not None
    price: UnitPrice = verdict.average

    def pays(tokens: Exact) -> bool:
        own = steps.staircase.total_pusd(steps.gpus, Volume(tokens, price.basis))
        return own <= tokens * Fraction(price.pusd_per_token)

    low, high = 0, int(end)
    tries = [high * n // POINTS for n in range(1, POINTS + 1)]
    high = next((tokens for tokens in tries if pays(tokens)), 0)
    if not high:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if pays(middle) else (middle, high)
    return Fraction(high)


def _end(survey: Survey, steps: Ladder, reach: Reach) -> Fraction:
    """The chart's right edge, in tokens of the period.

    Around today: twice the volume and the nearest reachable break-even, so that both are told
    apart. Up to capacity: everything that the engines could carry, however far.
    """
    capacity = Fraction(steps.capacity or 0) / steps.scale
    evens = [
        Fraction(verdict.even.volume.tokens)
        for verdict in survey.standing.verdicts
        if verdict.even is not None and verdict.even.volume is not None and verdict.even.feasible
    ]
    volume = Fraction(steps.volume)
    if reach is Reach.TODAY:
        return 2 * max(volume, min(evens, default=volume))
    return max([volume, capacity, *evens]) * Fraction(5, 4)


def _point(
    steps: Ladder, volume: Exact, pusd: Exact, kind: str, *, dash: str = "no"
) -> dict[str, Any]:
    return {
        "volume": float(volume * steps.scale),
        "usd": dollars(float(pusd * steps.scale)),
        "kind": kind,
        "dash": dash,
    }


def _minutes(survey: Survey, bill: PoolBill, pool: str) -> list[int]:
    """Every minute of the billed hours in time order, the quiet ones as zeros."""
    basis = survey.standing.served.basis
    rows = survey.minutes[pool]
    if not rows:
        return []
    first = min(rows[0].start_us, survey.scope.end_us - int(bill.hours * HOUR_US))
    length = max((rows[-1].start_us - first) // MINUTE_US + 1, int(bill.hours * MINUTES_PER_HOUR))
    load = [0] * length
    for row in rows:
        load[(row.start_us - first) // MINUTE_US] += asked(row, basis)
    return load


def _per_minute(survey: Survey, bill: PoolBill) -> Fraction:
    """What one step serves in a minute inside the SLO."""
    standing = survey.standing
    if standing.capability is None:
        return Fraction(0)
    rated = [one for one in standing.bills if one.rated]
    if len(rated) == 1 or not standing.capability.measured:
        whole = Fraction(standing.capability.volume.tokens)
        hours = sum((one.hours * one.replicas * one.available_share for one in rated), Fraction(0))
        return whole / hours / MINUTES_PER_HOUR if hours else Fraction(0)
    floor = floors({bill.pool: survey.minutes[bill.pool]}, standing.served.basis)
    return Fraction(floor.get(bill.pool, 0), bill.replicas)
