"""Comparison of a period as sentences: distance from break-even, and what could reduce it.

Each function turns parts of a `FleetEconomics` into plain text. The text never claims more than the
figures: a lower bound of the capacity is named as one, and a date needs two weeks of data.
"""

from fractions import Fraction

from dashboard import formatting
from ledger.economics.breakeven import BreakEven, CostDriver
from ledger.economics.trend import TrendResult, crossing
from ledger.fleet.capability import CapabilitySource
from ledger.queries.reads import DAY_US, HOUR_US, Scope
from ledger.reports.fleet_economics import ComparatorResult, FleetEconomics
from ledger.reports.survey import Survey

_LEVERS = {
    CostDriver.GPU_RATE: "a {single} rate of at most {} an hour at full capacity",
    CostDriver.API_PRICE: "traffic that avoids at least {} per 1M tokens at full capacity",
    CostDriver.CAPACITY: "an engine that serves {} tokens per {single} in this period",
    CostDriver.GPUS: "{} {many}, if the traffic is there",
    CostDriver.OPS: "ops of at most {}",
}
_RESTS_ON = {
    CapabilitySource.MEASURED: (
        "Capacity: measured step times, at the mix of requests of this period."
    ),
    CapabilitySource.SERVED: (
        "Capacity: more was served for whole hours than step times say; that stands."
    ),
    CapabilitySource.SPILLS: (
        "Capacity: as {} requests that spilled for lack of room show, at this mix."
    ),
    CapabilitySource.FLOOR: "Seen at best: the busiest minutes served; nothing was measured.",
}


def break_even_hints(standing: FleetEconomics, verdict: ComparatorResult) -> list[str]:
    """Return whether the engines can break even, and if not, what could change that."""
    even = verdict.even
    if even is None:
        return [
            "Capacity inside the SLO is not known yet: nobody can say if break-even is in reach."
        ]
    if even.feasible:
        return []
    if not even.volume:
        return ["**Cannot break even:** a token on own engines saves nothing against this API."]
    share = Fraction(even.volume.tokens) / Fraction(even.capacity.tokens)
    floor = standing.capability is None or standing.capability.known is CapabilitySource.FLOOR
    limit = "the most they were seen to serve" if floor else "what these engines can serve"
    ways = [
        _LEVERS[cure.lever].format(
            _needed_text(cure.lever, cure.needed), **_hardware(standing)._asdict()
        )
        for cure in even.cures
        if cure.needed
    ]
    takes = f"it takes {formatting.factor_text(share)} {limit}"
    return [
        f"**Cannot break even against this API as configured:** {takes}.",
        f"What could: {'; '.join(ways)}. {_rate_of_today(standing, even)}",
    ]


def _rate_of_today(standing: FleetEconomics, even: BreakEven) -> str:
    """Return the rate that the served volume pays for, because engines are seldom full."""
    single, rate = _hardware(standing).single, even.served_pusd_per_hour
    if rate is None:
        return f"The served volume pays for no {single} rate."
    return (
        f"The served volume pays for a {single} rate of at most {formatting.money(rate)} an hour."
    )


def capacity(standing: FleetEconomics) -> list[str]:
    """Return the basis of the gauge's capacity."""
    able = standing.capability
    return [] if able is None else [_RESTS_ON[able.known].format(f"{able.spilled_requests:,}")]


def trend(survey: Survey, verdict: ComparatorResult) -> list[str]:
    """Return when the volume crosses break-even, if two weeks of whole days show it."""
    even, hours = verdict.even, survey.standing.hours
    if even is None or not even.feasible or not hours or survey.bucket_us != DAY_US:
        return []
    today = survey.bucket_of(survey.scope.end_us)[0]
    first = max(survey.freshness.first_us or today, survey.scope.start_us)
    whole = survey.zone.days(Scope(survey.bucket_of(first)[1], today))
    days = dict.fromkeys((day.start_us for day in whole), 0.0)
    for moment in survey.moments:
        if moment.avoids and moment.start_us in days:
            days[moment.start_us] += moment.tokens
    assert even.volume is not None
    needed = float(Fraction(even.volume.tokens) * 24 / hours)
    last_day = survey.zone.date_of(today - HOUR_US)
    found = crossing(list(days.values()), last_day=last_day, needed_per_day=needed)
    if found.outlook is TrendResult.ABOVE:
        return ["The trend of the last days is above break-even."]
    if found.outlook is TrendResult.NOT_IN_SIGHT:
        return ["At the present growth the volume does not reach break-even within two years."]
    if found.outlook is TrendResult.TOO_LITTLE_DATA or found.day is None or found.earliest is None:
        return ["No date for break-even: under 14 whole days of data."]
    latest = f"{found.latest:%d %b %Y}" if found.latest else "an open end"
    interval = f"(80 % interval: {found.earliest:%d %b %Y} to {latest})"
    return [f"The trend crosses break-even about **{found.day:%d %b %Y}** {interval}."]


def _hardware(standing: FleetEconomics) -> formatting.Hardware:
    return formatting.hardware(bill.gpu_type for bill in standing.bills)


def _needed_text(lever: CostDriver, value: int | Fraction) -> str:
    if lever is CostDriver.API_PRICE:
        return formatting.money(Fraction(value) * 10**6)
    if lever is CostDriver.CAPACITY:
        return formatting.tokens(value)
    return str(value) if lever is CostDriver.GPUS else formatting.money(value)
