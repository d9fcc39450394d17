"""Comparison of staying with an API, renting, reserving and buying GPUs: NPV and payback.

Month k (1 to the horizon) needs `V_k = V x (1 + g)^(k-1)` tokens; a month has 8,760 / 12 hours. Own
GPUs cost `F(N) + overflow at the API's price` in it, as in `step_cost`. Money of month k is paid at
its end, a purchase at the start (month 0):

    stay      V_k x a
    rent      the cheapest N of every month, possibly 0, at the hourly rate
    spot      as rent, at the spot rate; interrupted hours serve nothing and cost nothing
    reserve   one N for the horizon at rate x (1 - discount), renewed by whole terms; payments
              after the horizon are due in its last month
    buy       N x price in month 0; then power, ops and overflow; at the end of the horizon N times
              the book value is returned: price - (price - residual) x min(1, horizon / life)

`NPV = sum of flow_k / (1 + r)^(k/12)`, costs positive. Payback is the first month from whose end on
the sum paid stays at or below the cost of staying, without the residual value.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, Context, Decimal
from enum import StrEnum
from fractions import Fraction
from itertools import accumulate

from ledger.economics.cost import Exact, UnitPrice, Volume
from ledger.economics.step_cost import LoadCurve, StepCost
from ledger.money import ceil_div

HOURS_OF_A_MONTH = Fraction(8760, 12)
MONTHS_OF_A_YEAR = 12
MOST_GPUS = 512
_WIDE = Context(prec=50, rounding=ROUND_HALF_EVEN)


class PurchaseKind(StrEnum):
    STAY = "stay with the API"
    RENT = "rent by the hour"
    SPOT = "rent spot hours"
    RESERVE = "reserve"
    BUY = "buy"


@dataclass(frozen=True, slots=True)
class DemandProfile:
    """Observed traffic of some hours, and the API's average price per token for it.

    `growth` is a share per month.
    """

    load: LoadCurve
    hours: Exact
    api: UnitPrice
    growth: Fraction = Fraction(0)

    def month(self, number: int) -> Fraction:
        """Return the tokens of month `number`, from 1."""
        first = Fraction(self.load.total) * HOURS_OF_A_MONTH / Fraction(self.hours)
        return first * (1 + self.growth) ** (number - 1)


@dataclass(frozen=True, slots=True)
class EngineOffer:
    """A GPU for rent: its hourly rate, and tokens per minute inside the SLO (duty included).

    `ops_pusd` is monthly ops and overhead, which does not grow with the number of GPUs.
    """

    pusd_per_hour: Exact
    tokens_per_minute: Exact
    ops_pusd: Exact = 0
    spares: int = 0


@dataclass(frozen=True, slots=True)
class Commitment:
    months: int
    discount: Fraction  # of the hourly rate


@dataclass(frozen=True, slots=True)
class Purchase:
    """A GPU to buy, with its share of the machine.

    `residual` is the share of the price left at the end of its life. `power_pusd_per_hour` is due
    every hour: power, cooling, space, support.
    """

    price_pusd: int
    life_months: int
    residual: Fraction
    power_pusd_per_hour: Exact = 0

    def book_value_pusd(self, months: int) -> Fraction:
        """Return the book value in pico-USD: straight-line, never below the residual value."""
        lost = self.price_pusd * (1 - self.residual)
        return self.price_pusd - lost * min(Fraction(1), Fraction(months, self.life_months))

    @property
    def amortised_pusd_per_month(self) -> Fraction:
        return self.price_pusd * (1 - self.residual) / self.life_months


@dataclass(frozen=True, slots=True)
class PurchaseOption:
    """One option. `flows` are payments in months 0, 1, ..., costs positive.

    `gpus` is the number in each month.
    """

    way: PurchaseKind
    name: str
    gpus: tuple[int, ...]
    flows: tuple[Fraction, ...]
    returned_pusd: Fraction = Fraction(0)  # already subtracted from the last flow

    def npv_pusd(self, discount_per_year: Fraction) -> int:
        return npv_pusd(self.flows, discount_per_year)

    def cumulative(self) -> list[Fraction]:
        """Return the sum paid by the end of each month, without the value returned at the end."""
        paid = [*self.flows[:-1], self.flows[-1] + self.returned_pusd]
        return list(accumulate(paid))


def npv_pusd(flows: Sequence[Exact], discount_per_year: Fraction) -> int:
    """Return the present value in pico-USD of payments at the ends of months 0, 1, ..."""
    rate = _decimal(1 + discount_per_year)
    total = Decimal(0)
    for month, flow in enumerate(flows):
        years = _WIDE.divide(Decimal(month), Decimal(MONTHS_OF_A_YEAR))
        worth = _WIDE.divide(_decimal(Fraction(flow)), _WIDE.power(rate, years))
        total = _WIDE.add(total, worth)
    return int(total.to_integral_value(rounding=ROUND_HALF_EVEN, context=_WIDE))


def payback_month(option: PurchaseOption, stay: PurchaseOption) -> int | None:
    """Return the month of payback, `None` if it is not within the horizon."""
    ahead = [own <= api for own, api in zip(option.cumulative(), stay.cumulative(), strict=True)]
    if not ahead[-1]:
        return None
    behind = [month for month, good in enumerate(ahead) if not good]
    return max(1, behind[-1] + 1 if behind else 1)


def stay(demand: DemandProfile, *, months: int) -> PurchaseOption:
    price = Fraction(demand.api.pusd_per_token)
    flows = tuple(demand.month(number) * price for number in range(1, months + 1))
    return PurchaseOption(
        PurchaseKind.STAY, str(PurchaseKind.STAY), (0,) * months, (Fraction(0), *flows)
    )


def rent(demand: DemandProfile, engine: EngineOffer, *, months: int) -> PurchaseOption:
    """Return the option to rent the cheapest number of GPUs each month, possibly none."""
    costs = _Costs(demand, engine)
    found = [costs.cheapest(number) for number in range(1, months + 1)]
    flows = (Fraction(0), *(cost for _, cost in found))
    return PurchaseOption(
        PurchaseKind.RENT, str(PurchaseKind.RENT), tuple(gpus for gpus, _ in found), flows
    )


def rent_spot(
    demand: DemandProfile, engine: EngineOffer, *, lost: Fraction, months: int
) -> PurchaseOption:
    """Return `rent` with GPUs interrupted, and unpaid, for a share `lost` of the hours.

    Ops are due in every month with a GPU, also for the interrupted hours.
    """
    found, alone = rent(demand, engine, months=months), stay(demand, months=months)
    ops = (Fraction(0), *(Fraction(engine.ops_pusd if gpus else 0) for gpus in found.gpus))
    flows = tuple(
        (1 - lost) * there + lost * (away + paid)
        for there, away, paid in zip(found.flows, alone.flows, ops, strict=True)
    )
    return PurchaseOption(PurchaseKind.SPOT, str(PurchaseKind.SPOT), found.gpus, flows)


def reserve(
    demand: DemandProfile,
    engine: EngineOffer,
    term: Commitment,
    *,
    months: int,
    discount_per_year: Fraction,
    gpus: int | None = None,
) -> PurchaseOption:
    """Return the option to reserve `gpus`, or the number with the lowest NPV if `None`."""
    rate = Fraction(engine.pusd_per_hour) * (1 - term.discount)
    costs = _Costs(demand, replace(engine, pusd_per_hour=rate))
    owed_months = ceil_div(months, term.months) * term.months - months

    def option(count: int) -> PurchaseOption:
        flows = [Fraction(0), *(costs.of(count, number) for number in range(1, months + 1))]
        flows[-1] += owed_months * costs.gpu_month_pusd(count)
        name = f"{PurchaseKind.RESERVE}, {term.months} months"
        return PurchaseOption(PurchaseKind.RESERVE, name, (count,) * months, tuple(flows))

    return _best(option, gpus, discount_per_year)


def buy(
    demand: DemandProfile,
    engine: EngineOffer,
    purchase: Purchase,
    *,
    months: int,
    discount_per_year: Fraction,
    gpus: int | None = None,
) -> PurchaseOption:
    """Return the option to buy: price and power are paid instead of the hourly rate.

    If `gpus` is `None`, the number with the lowest NPV is used.
    """
    costs = _Costs(demand, replace(engine, pusd_per_hour=purchase.power_pusd_per_hour))

    def option(count: int) -> PurchaseOption:
        owned = count + engine.spares
        back = owned * purchase.book_value_pusd(months)
        flows = [Fraction(owned * purchase.price_pusd)]
        flows += [costs.of(count, number) for number in range(1, months + 1)]
        flows[-1] -= back
        return PurchaseOption(
            PurchaseKind.BUY, str(PurchaseKind.BUY), (count,) * months, tuple(flows), back
        )

    return _best(option, gpus, discount_per_year)


def _best(
    option: Callable[[int], PurchaseOption], gpus: int | None, discount: Fraction
) -> PurchaseOption:
    """Return the option with the lowest NPV.

    The search stops at the first increase: each further GPU takes over less traffic.
    """
    if gpus is not None:
        return option(gpus)
    found, least = option(1), option(1).npv_pusd(discount)
    for count in range(2, MOST_GPUS + 1):
        other = option(count)
        value = other.npv_pusd(discount)
        if value >= least:
            break
        found, least = other, value
    return found


class _Costs:
    """The cost of months with a number of GPUs, overflow included."""

    def __init__(self, demand: DemandProfile, engine: EngineOffer) -> None:
        self._demand = demand
        self._share = HOURS_OF_A_MONTH / Fraction(demand.hours)
        self._stairs = StepCost(
            gpu_pusd=Fraction(engine.pusd_per_hour) * Fraction(demand.hours),
            other_pusd=Fraction(engine.ops_pusd) / self._share,
            spares=engine.spares,
            capacity_per_minute=engine.tokens_per_minute,
            api=demand.api,
            load=demand.load,
        )

    def of(self, gpus: int, month: int) -> Fraction:
        """Return the month's cost with `gpus`, scaled from the period of the load curve."""
        volume = Volume(self._demand.month(month) / self._share, self._demand.api.basis)
        return Fraction(self._stairs.total_pusd(gpus, volume)) * self._share

    def gpu_month_pusd(self, gpus: int) -> Fraction:
        return (gpus + self._stairs.spares) * Fraction(self._stairs.gpu_pusd) * self._share

    def cheapest(self, month: int) -> tuple[int, Fraction]:
        """Return the cheapest number of GPUs and its cost. Ops are due if there is any GPU."""
        none, best = self.of(0, month), min(self._falling(month), key=lambda pair: pair[1])
        return best if best[1] < none else (0, none)

    def _falling(self, month: int) -> Iterator[tuple[int, Fraction]]:
        before: Fraction | None = None
        for count in range(1, MOST_GPUS + 1):
            cost = self.of(count, month)
            yield count, cost
            if before is not None and cost >= before:
                return
            before = cost


def _decimal(value: Fraction) -> Decimal:
    return _WIDE.divide(Decimal(value.numerator), Decimal(value.denominator))
