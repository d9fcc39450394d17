"""What overflow is bought at: what was really paid for it, or a comparator's price for the same.

Requests that overflow are not those that are kept: bursts have their own lengths, and the router
buys them where it is cheapest. So the price of a token of overflow is the average over exactly the
requests that own engines lacked capacity for. Only where nothing overflowed does the comparator's
average over what was served stand in.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from ledger.economics.cost import TokenBasis, UnitPrice
from ledger.queries.attempts import ComparatorCost, OverflowCost
from ledger.reports.fleet_economics import ComparatorKind, ComparatorResult, chosen_comparisons

AS_BOUGHT = "as bought"


@dataclass(frozen=True, slots=True)
class OverflowPrice:
    """`pusd` is the sum over what overflowed in the span, of which `average` is the price."""

    name: str  # AS_BOUGHT or an `ComparatorKind`
    comparators: tuple[str, ...]
    average: UnitPrice
    pusd: int


def overflow_prices(
    found: Sequence[OverflowCost],
    served: Iterable[ComparatorCost],
    verdicts: Iterable[ComparatorResult],
    basis: TokenBasis,
) -> tuple[OverflowPrice, ...]:
    """As bought first, where a price was paid; then against every comparator of the verdicts."""
    paid = [cost for cost in found if cost.comparator is None]
    average = _average(paid, basis)
    prices = [] if average is None else [OverflowPrice(AS_BOUGHT, (), average, _sum(paid))]
    kept = list(served)
    for verdict in verdicts:
        same = _chosen_costs(found, kept, verdict.against)
        average = _average(same, basis) or verdict.average
        if average is not None:
            prices.append(
                OverflowPrice(str(verdict.against), verdict.comparators, average, _sum(same))
            )
    return tuple(prices)


def _chosen_costs(
    found: Iterable[OverflowCost], served: Iterable[ComparatorCost], against: ComparatorKind
) -> list[OverflowCost]:
    """What overflowed, at the comparators that the verdict names."""
    if against is ComparatorKind.SUBSTITUTE:
        return [cost for cost in found if cost.position == 0]
    chosen = {
        (comparison.model, comparison.comparator)
        for comparison in chosen_comparisons(served, against)
    }
    return [cost for cost in found if cost.position and (cost.model, cost.comparator) in chosen]


def _average(rows: Iterable[OverflowCost], basis: TokenBasis) -> UnitPrice | None:
    output = basis is TokenBasis.OUTPUT
    known = list(rows)
    tokens = sum(name.output_tokens if output else name.tokens for name in known)
    return UnitPrice(Fraction(_sum(known), tokens), basis) if tokens else None


def _sum(rows: Iterable[OverflowCost]) -> int:
    return sum(row.pusd for row in rows)
