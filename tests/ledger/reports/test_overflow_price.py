"""Overflow is priced by what overflowed; the average over what was served only stands in."""

from fractions import Fraction
from types import SimpleNamespace

import pytest

from ledger.economics.cost import TokenBasis, UnitPrice
from ledger.queries.reads import ComparatorCost, OverflowCost
from ledger.reports.fleet_economics import ComparatorKind
from ledger.reports.overflow_price import AS_BOUGHT, OverflowPrice, overflow_prices

BOTH, OUTPUT = TokenBasis
SERVED = [
    ComparatorCost("m", "p", 0, "dear", 100, 10, 900, 0, scaled=False),
    ComparatorCost("m", "p", 1, "cheap", 100, 10, 100, 0, scaled=False),
    ComparatorCost("m", "p", 2, "host", 100, 10, 200, 0, scaled=False),
]
FOUND = [
    OverflowCost("m", None, None, 30, 10, 60),
    OverflowCost("n", None, None, 10, 0, 20),
    OverflowCost("m", "dear", 0, 40, 20, 280),
    OverflowCost("m", "cheap", 1, 40, 20, 40),
    OverflowCost("m", "host", 2, 40, 20, 20),
]


def verdicts(basis: TokenBasis = BOTH) -> list[SimpleNamespace]:
    """Of a verdict only these three are read."""
    names = {ComparatorKind.SUBSTITUTE: ("dear", 9), ComparatorKind.SAME_WEIGHTS: ("cheap", 1)}
    return [
        SimpleNamespace(against=key, comparators=(name,), average=UnitPrice(price, basis))
        for key, (name, price) in names.items()
    ]


def test_every_price_is_of_exactly_what_overflowed() -> None:
    assert overflow_prices(FOUND, SERVED, verdicts(), BOTH) == (
        OverflowPrice(AS_BOUGHT, (), UnitPrice(Fraction(2), BOTH), 80),
        OverflowPrice("substitute model", ("dear",), UnitPrice(Fraction(7), BOTH), 280),
        # `host` would be cheaper for these; the verdict is against `cheap`.
        OverflowPrice("same weights elsewhere", ("cheap",), UnitPrice(Fraction(1), BOTH), 40),
    )


def test_the_basis_counts_its_tokens() -> None:
    found = overflow_prices(FOUND, SERVED, verdicts(OUTPUT), OUTPUT)
    assert [finding.average.pusd_per_token for finding in found] == [8, 14, 2]


@pytest.mark.parametrize("found", [[], [OverflowCost("m", None, None, 0, 0, 5)]])
def test_where_nothing_overflowed_the_average_over_what_was_served_stands_in(found) -> None:
    prices = overflow_prices(found, SERVED, verdicts(), BOTH)
    assert [(price.name, price.average.pusd_per_token, price.pusd) for price in prices] == [
        ("substitute model", 9, 0), ("same weights elsewhere", 1, 0),
    ]  # fmt: skip
