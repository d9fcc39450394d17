"""How far break-even is, in words: never more than the figures say."""

from dataclasses import replace
from fractions import Fraction

import pytest

from dashboard.sections import result_text
from ledger.economics.breakeven import BreakEvenPosition, FleetConfiguration, assess
from ledger.economics.cost import FixedCost, TokenBasis, UnitPrice, Volume
from ledger.fleet.capability import CapabilitySource, FleetCapability
from ledger.reports.fleet_economics import ComparatorKind, ComparatorResult, FleetEconomics

BOTH = TokenBasis.INPUT_OUTPUT
USD = 10**12
MILLION = 10**6


def verdict(
    against: ComparatorKind, result_usd: int | None, *, price: int = 10**6
) -> ComparatorResult:
    volume = Volume(10 * MILLION, BOTH)
    stands = (
        None if result_usd is None else BreakEvenPosition(volume, Fraction(1), result_usd * USD)
    )
    configuration = FleetConfiguration(1, USD, 10, Volume(8 * MILLION, BOTH))
    even = assess(configuration, UnitPrice(price, BOTH))
    return ComparatorResult(
        against, (f"{against.value.split()[0]}/x",), 0, 0, volume, UnitPrice(price, BOTH), even,
        stands, False, Fraction(USD, 2),
    )  # fmt: skip


def standing(*verdicts: ComparatorResult, **changes: object) -> FleetEconomics:
    values = {
        "bills": (), "unrated": (), "hours": Fraction(10), "fixed": FixedCost(USD),
        "served": Volume(1, BOTH), "verdicts": verdicts,
        "capability": FleetCapability(Volume(8 * MILLION, BOTH), CapabilitySource.MEASURED),
    }  # fmt: skip
    return FleetEconomics(**(values | changes))


def test_out_of_reach_says_by_how_much_and_what_could() -> None:
    look = standing(verdict(ComparatorKind.SUBSTITUTE, -1))
    first, second = result_text.break_even_hints(look, look.verdicts[0])
    assert "Cannot break even" in first
    assert "1.25x what these engines can serve" in first
    assert "a GPU rate of at most $0.80 an hour" in second
    assert "traffic that avoids at least $1.25 per 1M tokens" in second
    assert "a GPU rate of at most $0.80 an hour at full capacity" in second
    floor = standing(verdict(ComparatorKind.SUBSTITUTE, -1), capability=FleetCapability(
        Volume(8 * MILLION, BOTH), CapabilitySource.FLOOR
    ))  # fmt: skip
    assert (
        "the most they were seen to serve"
        in result_text.break_even_hints(floor, floor.verdicts[0])[0]
    )


def test_the_rate_that_the_served_volume_pays_for_stands_beside_that_of_full_engines() -> None:
    """A reader once took the rate of full engines for the one that would do at today's volume."""
    configuration = FleetConfiguration(1, USD, 10, Volume(8 * MILLION, BOTH))
    look = standing(verdict(ComparatorKind.SUBSTITUTE, -1))
    (found,) = look.verdicts
    for served, said in (
        (2 * MILLION, "The served volume pays for a GPU rate of at most $0.20 an hour."),
        (0, "The served volume pays for no GPU rate."),
    ):
        even = assess(configuration, found.average, served=Volume(served, BOTH))
        assert said in result_text.break_even_hints(look, replace(found, even=even))[1]


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (CapabilitySource.MEASURED, "Capacity: measured step times"),
        (CapabilitySource.SERVED, "Capacity: more was served for whole hours"),
        (CapabilitySource.SPILLS, "Capacity: as 812 requests that spilled"),
        (CapabilitySource.FLOOR, "Seen at best: the busiest minutes"),
    ],
)
def test_what_a_capacity_rests_on_is_said(known: CapabilitySource, said: str) -> None:
    look = standing(capability=FleetCapability(Volume(1, BOTH), known, 812))
    (text,) = result_text.capacity(look)
    assert text.startswith(said)
    assert result_text.capacity(standing(capability=None)) == []


def test_within_reach_needs_no_cure() -> None:
    look = standing(verdict(ComparatorKind.SUBSTITUTE, 1, price=2 * 10**6))
    assert result_text.break_even_hints(look, look.verdicts[0]) == []


def test_a_free_api_never_breaks_even_and_unknown_capacity_is_unknown() -> None:
    look = standing(verdict(ComparatorKind.SUBSTITUTE, -1, price=0))
    assert "saves nothing" in result_text.break_even_hints(look, look.verdicts[0])[0]
    this_verdict = verdict(ComparatorKind.SUBSTITUTE, 1)
    blind = ComparatorResult(
        this_verdict.against,
        this_verdict.comparators,
        0,
        0,
        this_verdict.covered,
        this_verdict.average,
        None,
        this_verdict.stands,
        False,
        None,
    )
    assert "not known yet" in result_text.break_even_hints(look, blind)[0]


def test_a_date_needs_two_weeks(page, books, text_of) -> None:
    young = books(peak=20.0, days=9)
    assert "under 14 whole days of data" in text_of(page("answer", young.url))
