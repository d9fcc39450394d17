"""The verdict in sentences: what finance reads first, and why it is so.

Each function turns parts of a `FleetEconomics` into plain text. The wording never says more than
the figures: a floor under the capacity is called one, and a date needs two weeks of data.
"""

from dataclasses import dataclass
from fractions import Fraction

from dashboard import formatting
from dashboard.theme import GAIN, LOSS
from ledger.economics.breakeven import CostDriver
from ledger.economics.trend import TrendResult, crossing
from ledger.fleet.capability import CapabilitySource
from ledger.queries.reads import DAY_US, HOUR_US, Scope
from ledger.reports.fleet_economics import ComparatorKind, ComparatorResult, FleetEconomics
from ledger.reports.survey import Survey

MIXED, UNKNOWN = "#9A5B13", "#4A5652"
_LEVERS = {
    CostDriver.GPU_RATE: "a {single} rate of at most {} an hour",
    CostDriver.API_PRICE: "traffic that avoids at least {} per 1M tokens",
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


@dataclass(frozen=True, slots=True)
class Headline:
    question: str
    text: str
    more: str
    colour: str


def headline(standing: FleetEconomics, period: str) -> Headline:
    """Yes, no, or yes against one and no against the other; or what is missing to say so."""
    own = _hardware(standing).many
    question = f"Last {period}, own {own} against buying the same answers"
    known = [verdict for verdict in standing.verdicts if verdict.stands is not None]
    if not known:
        return _unknown_headline(standing, question)
    winners = [name for name in known if _result(name) >= 0]
    losers = [name for name in known if _result(name) < 0]
    parts = [_part(winner) for winner in (*winners, *losers)]
    more = "; ".join(parts) + "."
    if not losers:
        return Headline(question, f"Yes, the {own} are worth it.", more, GAIN)
    if not winners:
        return Headline(question, "No, not at this volume.", more, LOSS)
    text = f"Yes against {_names(winners[0])}, no against {_names(losers[0])}."
    return Headline(question, text, more, MIXED)


def break_even_hints(standing: FleetEconomics, verdict: ComparatorResult) -> list[str]:
    """Whether break-even is within reach of the engines, and if not, what could change that."""
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
        f"What could: {'; '.join(ways)}.",
    ]


def capacity(standing: FleetEconomics) -> list[str]:
    """What the capacity in the gauge rests on."""
    able = standing.capability
    return [] if able is None else [_RESTS_ON[able.known].format(f"{able.spilled_requests:,}")]


def trend(survey: Survey, verdict: ComparatorResult) -> list[str]:
    """When the growing volume crosses break-even, if two weeks of whole days say so."""
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


def _unknown_headline(standing: FleetEconomics, question: str) -> Headline:
    own = _hardware(standing).many
    if standing.unrated:
        text = "Enter your GPU rate to see the answer."
        rates = [verdict.pays_below_pusd_per_hour for verdict in standing.verdicts]
        below = [rate for rate in rates if rate is not None and rate > 0]
        more = f"The {own} run, but what an hour of them costs is not in the books"
        if below:
            more += f"; below {formatting.money(max(below))} per GPU-hour they would pay"
        return Headline(question, text, f"{more}.", UNKNOWN)
    if not standing.bills:
        more = "No pool of own engines is configured, so there is nothing to break even."
        return Headline(question, "No own GPUs in these books.", more, UNKNOWN)
    cost = formatting.money(standing.fixed.total_pusd)
    more = f"Own {own} cost {cost} and have answered nothing that an API could be compared with."
    return Headline(question, "Not so far: nothing was served.", more, LOSS)


def _part(verdict: ComparatorResult) -> str:
    word = "made" if _result(verdict) >= 0 else "lost"
    names = verdict.comparators
    against = f"{names[0]} ({verdict.against})" if len(names) == 1 else _names(verdict)
    return f"{formatting.money(abs(_result(verdict)))} {word} against {against}"


def _names(verdict: ComparatorResult) -> str:
    """The comparator by its name; of several only what they have in common."""
    names = verdict.comparators
    if len(names) == 1:
        return names[0]
    return f"the {verdict.against}" + ("s" if verdict.against is ComparatorKind.SUBSTITUTE else "")


def _result(verdict: ComparatorResult) -> Fraction:
    return Fraction(verdict.result_pusd or 0)


def _needed_text(lever: CostDriver, value: int | Fraction) -> str:
    if lever is CostDriver.API_PRICE:
        return formatting.money(Fraction(value) * 10**6)
    if lever is CostDriver.CAPACITY:
        return formatting.tokens(value)
    return str(value) if lever is CostDriver.GPUS else formatting.money(value)
