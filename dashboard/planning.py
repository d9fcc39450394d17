"""Ways of a purchase plan, from traffic, a GPU and entered figures; pure.

Traffic is what this ledger sent to APIs, or a provider's usage export. Traffic of own pools is
covered by the verdict: `pool_ways` judges it at each way's rate without pricing it here. A GPU
without a rate has no rented or reserved way, one without a price no bought way: unknown is not $0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dashboard import formatting
from dashboard.figures import dollars
from dashboard.scenario import ScenarioChange, changed
from ledger.economics.breakeven import BreakEven, FleetConfiguration, assess
from ledger.economics.cost import (
    Exact,
    TokenBasis,
    UnitPrice,
    Volume,
    average_price,
    ops_cost,
    weeks_of,
)
from ledger.economics.fleet_verdict import FleetVerdict
from ledger.economics.purchase import (
    HOURS_OF_A_MONTH,
    Commitment,
    DemandProfile,
    EngineOffer,
    Purchase,
    PurchaseKind,
    PurchaseOption,
    buy,
    payback_month,
    rent,
    rent_spot,
    reserve,
    stay,
)
from ledger.economics.step_cost import load_curve
from ledger.economics.usagefile import PricedUsage, UsageFile
from ledger.reports.survey import Survey

BASIS = TokenBasis.INPUT_OUTPUT
MINUTES_PER_HOUR = 60
SECONDS_PER_MINUTE = 60
MINUTE_US = 60 * 10**6
HOUR_US = 3_600 * 10**6
# Peaks of ten minutes were measured at 1.9 to 3.3 times the mean: where an export hides them,
# two fifths of what a GPU can serve is what it will.
HIDDEN_PEAKS_DUTY = Fraction(2, 5)
COLOURS = {
    PurchaseKind.STAY: "#E0912F",
    PurchaseKind.RENT: "#2E75D6",
    PurchaseKind.SPOT: "#5B2A86",
    PurchaseKind.RESERVE: "#0F766E",
    PurchaseKind.BUY: "#7A5AF8",
}
MORE_RESERVED = "#6FB5AC"


@dataclass(frozen=True, slots=True)
class PlanTraffic:
    """Traffic of a plan: tokens of each minute, the API's price per token, and notes."""

    name: str
    minutes: tuple[int, ...]
    average: UnitPrice
    notes: tuple[str, ...] = ()
    hidden_peaks: bool = False
    is_of_ledger: bool = False

    @property
    def hours(self) -> Fraction:
        return Fraction(len(self.minutes), MINUTES_PER_HOUR)

    @property
    def per_month(self) -> Fraction:
        return sum(self.minutes) * HOURS_OF_A_MONTH / self.hours


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """Inputs of a plan; shares are fractions, money is pico-USD, `None` is unknown."""

    months: int
    growth: Fraction
    discount_per_year: Fraction
    pusd_per_hour: int | None
    tokens_per_s: Exact | None
    duty: Fraction
    spares: int
    ops_hours_per_week: Fraction | None
    ops_pusd_per_hour: int | None
    terms: tuple[Commitment, ...]
    purchase: Purchase | None
    spot_pusd_per_hour: int | None = None
    spot_lost: Fraction = Fraction(0)  # share of hours in which the engine is reclaimed
    gpus: int | None = None  # number to reserve or buy; `None`: the cheapest one

    @property
    def ops_pusd(self) -> Fraction:
        """Return a month's ops cost; unknown parts count as 0, and the page says so."""
        if self.ops_hours_per_week is None or self.ops_pusd_per_hour is None:
            return Fraction(0)
        cost = ops_cost(
            hours_per_week=self.ops_hours_per_week,
            pusd_per_hour=self.ops_pusd_per_hour,
            weeks=weeks_of(HOURS_OF_A_MONTH),
        )
        return Fraction(cost)


@dataclass(frozen=True, slots=True)
class OptionResult:
    """One way compared with staying: NPV of its costs, and saved NPV (< 0: more expensive)."""

    option: PurchaseOption
    npv_pusd: int
    saved_pusd: int
    payback: int | None


@dataclass(frozen=True, slots=True)
class PurchasePlan:
    """A plan with its ways; the first one is staying."""

    traffic: PlanTraffic
    figures: PlanInputs
    ways: tuple[OptionResult, ...]

    @property
    def best(self) -> OptionResult:
        return min(self.ways, key=lambda way: way.npv_pusd)


def plan(traffic: PlanTraffic, figures: PlanInputs) -> PurchasePlan:
    """Return every way that the inputs allow; without a throughput only staying."""
    demand = DemandProfile(
        load_curve(traffic.minutes), traffic.hours, traffic.average, figures.growth
    )
    months, rate = figures.months, figures.discount_per_year
    alone = stay(demand, months=months)
    options = [alone]
    if figures.tokens_per_s and figures.pusd_per_hour:
        engine = _engine(figures, figures.pusd_per_hour)
        options.append(rent(demand, engine, months=months))
        options += [
            reserve(demand, engine, term, months=months, discount_per_year=rate, gpus=figures.gpus)
            for term in figures.terms
        ]
    if figures.tokens_per_s and figures.spot_pusd_per_hour:
        engine = _engine(figures, figures.spot_pusd_per_hour)
        options.append(rent_spot(demand, engine, lost=figures.spot_lost, months=months))
    if figures.tokens_per_s and figures.purchase is not None:
        engine = _engine(figures, 0)
        options.append(
            buy(
                demand, engine, figures.purchase, months=months, discount_per_year=rate,
                gpus=figures.gpus,
            )
        )  # fmt: skip
    value = alone.npv_pusd(rate)
    judged = [
        OptionResult(
            option, worth := option.npv_pusd(rate), value - worth, payback_month(option, alone)
        )
        for option in options
    ]
    return PurchasePlan(traffic, figures, tuple(judged))


def break_even_of(traffic: PlanTraffic, figures: PlanInputs) -> BreakEven | None:
    """Return one rented GPU against the API per month; `None` without rate or throughput."""
    if not figures.pusd_per_hour or not figures.tokens_per_s:
        return None
    engine = _engine(figures, figures.pusd_per_hour)
    each = Fraction(engine.tokens_per_minute) * MINUTES_PER_HOUR * HOURS_OF_A_MONTH
    configuration = FleetConfiguration(
        1, figures.pusd_per_hour, HOURS_OF_A_MONTH, Volume(each, BASIS), figures.ops_pusd,
        spares=figures.spares,
    )  # fmt: skip
    served = Volume(traffic.per_month, BASIS)
    return assess(configuration, traffic.average, served=served)


def _engine(figures: PlanInputs, pusd_per_hour: int) -> EngineOffer:
    rate = Fraction(figures.tokens_per_s or 0) * SECONDS_PER_MINUTE * figures.duty
    return EngineOffer(pusd_per_hour, rate, figures.ops_pusd, figures.spares)


@dataclass(frozen=True, slots=True)
class PoolWay:
    """A pool's verdict with its GPUs paid in another way, at this rate per GPU-hour."""

    name: str
    pusd_per_hour: Fraction
    verdict: FleetVerdict


def pool_ways(found: FleetVerdict, pool: str, terms: Sequence[Commitment]) -> list[PoolWay]:
    """Judge the pool at its current rate and each commitment's; empty without a verdict.

    A reserved GPU is billed in every hour, whatever share of them is billed today.
    """
    judged = [line.assumptions for line in found.judged if line.pool == pool]
    ways = []
    for assumptions in judged:
        rate = Fraction(assumptions.pusd_per_hour or 0)
        offers = [("as contracted", rate)] + [
            (f"reserved for {term.months} months", rate * (1 - term.discount)) for term in terms
        ]
        for place, (name, offered) in enumerate(offers):
            change = ScenarioChange(
                pusd_per_hour=None if offered == rate else offered,
                billed_share=Fraction(1) if place else None,
            )
            ways.append(PoolWay(name, offered, changed(found, pool, change)))
    return ways


def of_ledger(survey: Survey) -> list[PlanTraffic]:
    """Return the traffic that APIs answered; empty without priced traffic."""
    return _of_apis(survey)


def _of_apis(survey: Survey) -> list[PlanTraffic]:
    """Return the traffic that APIs answered at the charged amounts, by chart buckets."""
    start = survey.scope.start_us
    first = min((moment.start_us for moment in survey.moments), default=start)
    start = max(start - start % MINUTE_US, first - first % MINUTE_US)
    count = max(1, (survey.scope.end_us - start) // MINUTE_US)
    minutes = [0] * count
    pairs = []
    for moment in survey.moments:
        if moment.backend != "api" or not moment.tokens:
            continue
        # A bucket that has just begun is in an unfinished minute.
        place = min(count - 1, max(0, (moment.start_us - start) // MINUTE_US))
        width = max(1, min(survey.bucket_us // MINUTE_US, count - place))
        each, rest = divmod(moment.tokens, width)
        for n in range(width):
            minutes[place + n] += each + (n < rest)
        pairs.append((moment.cost_pusd, moment.tokens))
    average = average_price(pairs, basis=BASIS)
    if average is None or not average.pusd_per_token:
        return []
    coarse = survey.bucket_us > HOUR_US
    name = "what went to APIs, at what they charged"
    notes = _coarse(survey.bucket_us)
    return [PlanTraffic(name, tuple(minutes), average, notes, coarse, is_of_ledger=True)]


def of_file(file: UsageFile, cost: PricedUsage) -> PlanTraffic | None:
    """Return the traffic of an export at book prices; `None` if nothing in it has a price."""
    names = frozenset(cost.pusd)
    minutes = file.minutes(BASIS, names)
    tokens = sum(minutes)
    average = average_price([(sum(cost.pusd.values()), tokens)], basis=BASIS) if tokens else None
    if average is None or not average.pusd_per_token:
        return None
    notes = [*_coarse(file.finest_us)]
    if cost.unpriced:
        left = ", ".join(cost.unpriced)
        notes.append(f"No price is known for {left}: left out, not counted as free.")
    if cost.other_tier:
        notes.append(f"Priced at standard rates: {', '.join(cost.other_tier)} (tier not listed).")
    return PlanTraffic(file.shape, tuple(minutes), average, tuple(notes), file.finest_us > HOUR_US)


def _coarse(width_us: int) -> tuple[str, ...]:
    if width_us <= MINUTE_US:
        return ()
    return (
        (
            f"Traffic is known in buckets of {formatting.length(width_us)}; peaks within them are "
            "not seen, so GPUs look cheaper here than they are."
        ),
    )


def cumulative_records(found: PurchasePlan) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Return the chart's points and the color of each way."""
    records: list[dict[str, Any]] = []
    colours: dict[str, str] = {}
    for way in found.ways:
        option = way.option
        colour = COLOURS[option.way]
        if option.way is PurchaseKind.RESERVE and colour in colours.values():
            colour = MORE_RESERVED
        colours[option.name] = colour
        records += [
            {"month": month, "usd": dollars(float(paid)), "kind": option.name}
            for month, paid in enumerate(option.cumulative())
        ]
    return records, colours


def number_of(gpus: Sequence[int]) -> str:
    """Return `2`, or `0 to 3` if the number follows the traffic."""
    low, high = min(gpus), max(gpus)
    return str(low) if low == high else f"{low} to {high}"


def verdict(found: PurchasePlan, gpu: str) -> tuple[str, str, bool]:
    """Return the answer, a second sentence, and whether leaving the API is cheaper."""
    best = found.best
    months = formatting.plural(found.figures.months, "month")
    entered = found.figures.ops_hours_per_week is not None
    ops = "" if entered and found.figures.ops_pusd_per_hour is not None else " (ops not entered)"
    if len(found.ways) == 1:
        return "Enter your GPU rate to see the ways out.", "Only staying has a price so far.", False
    if best.option.way is PurchaseKind.STAY:
        text = f"Stay with the API for this traffic, for {months}."
        real = [way for way in found.ways if max(way.option.gpus)]
        if not real:
            return text, f"One {gpu} is cheaper than the API in no month{ops}.", False
        others = max(real, key=lambda result: result.saved_pusd)
        more = (
            f"The next best way, {others.option.name} ({number_of(others.option.gpus)} x {gpu}), "
            f"costs {formatting.money(-others.saved_pusd)} more in today's money{ops}."
        )
        return text, more, False
    text = f"{formatting.sentence(best.option.name)}: {number_of(best.option.gpus)} x {gpu}."
    back = "never pays back" if best.payback is None else f"pays back in month {best.payback}"
    more = (
        f"{formatting.money(best.saved_pusd)} less than staying over {months}, in today's "
        f"money; {back}{ops}."
    )
    return text, more, True
