"""Economics of own GPUs in one span: bills, avoided API cost, break-even, capacity.

Query results are the input, one `FleetEconomics` is the output, and each page shows a part of it.
No I/O. A pool without a rate has no bill: it is named and left out of totals, never counted as
free. Only requests that own engines answered inside their SLO avoid cost. Two comparators are kept
apart: the substitute that a team would buy, and the same weights at their cheapest host.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import ceil

from ledger.economics.breakeven import (
    BreakEven,
    BreakEvenPosition,
    FleetConfiguration,
    assess,
    position,
)
from ledger.economics.cost import HOURS_OF_A_MONTH, Exact, FixedCost, TokenBasis, UnitPrice, Volume
from ledger.fleet.bills import PoolBill
from ledger.fleet.capability import FleetCapability
from ledger.queries.attempts import ComparatorCost


class ComparatorKind(StrEnum):
    SUBSTITUTE = "substitute model"
    SAME_WEIGHTS = "same weights elsewhere"


@dataclass(frozen=True, slots=True)
class ComparatorResult:
    """Result against one comparator. `covered` excludes tokens without that comparator."""

    against: ComparatorKind
    comparators: tuple[str, ...]
    avoided_pusd: int
    missed_pusd: int  # served outside the SLO: not counted
    covered: Volume
    average: UnitPrice | None
    even: BreakEven | None  # `None`: no average price, or no capacity known
    stands: BreakEvenPosition | None
    scaled: bool
    cancelled_pusd: int = 0  # part of the avoided cost: the client disconnected

    @property
    def result_pusd(self) -> Exact | None:
        return None if self.stands is None else self.stands.result_pusd


@dataclass(frozen=True, slots=True)
class FleetEconomics:
    """Economics of one span.

    `fixed` is the bill of rated pools with ops; `served` is inside the SLO.
    """

    bills: tuple[PoolBill, ...]
    unrated: tuple[str, ...]
    hours: Fraction
    fixed: FixedCost
    served: Volume
    capability: FleetCapability | None
    verdicts: tuple[ComparatorResult, ...]

    @property
    def is_free(self) -> bool:
        """Return whether billed hours cost $0, ops included, so that no saving can be told."""
        return bool(self.hours) and not self.fixed.total_pusd

    def per_month(self, pusd: Exact) -> Fraction | None:
        """Return an amount of this span scaled to a month of 720 hours."""
        return Fraction(pusd) * HOURS_OF_A_MONTH / self.hours if self.hours else None


def fleet_economics(
    bills: Sequence[PoolBill],
    found: Sequence[ComparatorCost],
    *,
    served: Volume,
    capability: FleetCapability | None,
) -> FleetEconomics:
    """Return the economics of pools. `served` and `found` cover the `rated_pools` of `bills`."""
    rated = [bill for bill in bills if bill.is_rated]
    hours = max((bill.hours for bill in rated), default=Fraction(0))
    fixed = FixedCost(
        sum(bill.bill_pusd for bill in rated), sum((bill.ops_pusd for bill in rated), Fraction(0))
    )
    verdicts = tuple(
        _verdict(against, chosen, rated or bills, fixed, served, capability)
        for against in ComparatorKind
        if (chosen := chosen_comparisons(found, against))
    )
    unrated = tuple(bill.pool for bill in bills if not bill.is_rated)
    return FleetEconomics(tuple(bills), unrated, hours, fixed, served, capability, verdicts)


def rated_pools(bills: Iterable[PoolBill]) -> frozenset[str]:
    """Return the pools with a known rate, or all pools if none has one, to count their volume."""
    pools = list(bills)
    return frozenset(bill.pool for bill in pools if bill.is_rated) or frozenset(
        bill.pool for bill in pools
    )


def chosen_comparisons(
    found: Iterable[ComparatorCost], against: ComparatorKind
) -> list[ComparatorCost]:
    """Return per model and pool the first comparator, or the cheapest per token of the others."""
    if against is ComparatorKind.SUBSTITUTE:
        return [cost for cost in found if cost.position == 0]
    cheapest: dict[tuple[str, str], ComparatorCost] = {}
    for cost in found:
        key = (cost.model, cost.pool)
        if cost.position and (key not in cheapest or _price(cost) < _price(cheapest[key])):
            cheapest[key] = cost
    return list(cheapest.values())


def tokens_of(comparator_cost: ComparatorCost, basis: TokenBasis) -> int:
    return (
        comparator_cost.tokens_in_slo
        if basis is TokenBasis.INPUT_OUTPUT
        else comparator_cost.output_tokens_in_slo
    )


def _price(comparator_cost: ComparatorCost) -> Fraction:
    return Fraction(comparator_cost.avoided_pusd, comparator_cost.tokens_in_slo or 1)


def _verdict(
    against: ComparatorKind,
    chosen: Sequence[ComparatorCost],
    bills: Sequence[PoolBill],
    fixed: FixedCost,
    served: Volume,
    capability: FleetCapability | None,
) -> ComparatorResult:
    basis = served.basis
    avoided = sum(choice.avoided_pusd for choice in chosen)
    covered = Volume(sum(tokens_of(choice, basis) for choice in chosen), basis)
    average = UnitPrice(Fraction(avoided) / covered.tokens, basis) if covered.tokens else None
    even = None
    stands = None
    rated = [bill for bill in bills if bill.is_rated]
    if rated and average is not None:
        stands = position(volume=covered, fixed_pusd=fixed.total_pusd, avoided=average)
        if capability is not None:
            even = assess(_configuration(rated, fixed, capability), average, served=covered)
    elif rated:
        stands = BreakEvenPosition(covered, Fraction(0), -fixed.total_pusd)
    return ComparatorResult(
        against,
        tuple(sorted({choice.comparator for choice in chosen})),
        avoided,
        sum(choice.missed_pusd for choice in chosen),
        covered,
        average,
        even,
        stands,
        any(choice.scaled for choice in chosen),
        sum(choice.cancelled_pusd for choice in chosen),
    )


def _configuration(
    rated: Sequence[PoolBill], fixed: FixedCost, capability: FleetCapability
) -> FleetConfiguration:
    """Return the rated pools as one: bill, GPU hours, capacity. A shared GPU counts once."""
    gpus = max(1, ceil(sum(bill.gpus * bill.share for bill in rated)))
    gpu_hours = sum((bill.gpu_hours for bill in rated), Fraction(0))
    each = Volume(Fraction(capability.volume.tokens) / gpus, capability.volume.basis)
    rate = Fraction(fixed.gpu_pusd) / gpu_hours if gpu_hours else Fraction(0)
    return FleetConfiguration(gpus, rate, gpu_hours / gpus, each, fixed.ops_pusd)
