"""The break-even volume of a month is the page's, and what is not known of it is said."""

from dataclasses import replace
from fractions import Fraction

import pytest

from ledger.economics.cost import TokenBasis, Volume
from ledger.fleet.bills import PoolBill
from ledger.fleet.capability import CapabilitySource, FleetCapability
from ledger.queries.attempts import ComparatorCost
from ledger.reports.fleet_economics import fleet_economics
from ledger.reports.month_even import FREE, MonthEven, month_evens

USD = 10**12
BOTH = TokenBasis.INPUT_OUTPUT
BILL = PoolBill(
    pool="llama", gpu_type="H200", gpus=1, replicas=1, pusd_per_hour=2 * USD, source="c",
    simulated=False, bill_pusd=20 * USD, used_pusd=8 * USD, idle_pusd=11 * USD,
    unavailable_pusd=USD, ops_pusd=Fraction(5 * USD), hours=Fraction(10),
    available_share=Fraction(9, 10),
)  # fmt: skip
COST = ComparatorCost("chat", "llama", 0, "openai/x", 20_000_000, 5_000_000, 40 * USD, 0, False)
SERVED = Volume(20_000_000, BOTH)


def found(capacity: int | None, *costs: ComparatorCost, bill: PoolBill = BILL) -> list[MonthEven]:
    able = None
    if capacity is not None:
        able = FleetCapability(Volume(capacity, BOTH), CapabilitySource.MEASURED)
    standing = fleet_economics([bill], costs or [COST], served=SERVED, capability=able)
    return month_evens({"llama": standing}, 744)


def test_the_volume_is_the_periods_at_the_months_hours() -> None:
    (line,) = found(30_000_000)
    assert (line.pool, line.against, line.comparators) == (
        "llama", "substitute model", ("openai/x",),
    )  # fmt: skip
    month = Fraction(744, 10)
    assert line.tokens == 12_500_000 * month
    assert line.capacity == 30_000_000 * month
    assert line.served == 20_000_000 * month
    assert line.state == "reached"
    assert line.described() == {
        "pool": "llama", "against": "substitute model", "comparators": ["openai/x"],
        "basis": "input + output", "tokens_per_month": 930_000_000,
        "capacity_tokens_per_month": 2_232_000_000, "served_tokens_per_month": 1_488_000_000,
        "state": "reached",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("capacity", "avoided", "state", "is_known"),
    [
        (30_000_000, 20 * USD, "not reached", True),
        (12_000_000, 40 * USD, "beyond the capacity inside the SLO", True),
        (None, 40 * USD, "capacity is not known", True),
        (30_000_000, 0, "no volume: a token on own engines avoids nothing", False),
    ],
)
def test_what_stands_against_it_is_said(capacity, avoided, state, is_known) -> None:
    (line,) = found(capacity, replace(COST, avoided_pusd=avoided))
    assert line.state == state
    assert (line.tokens is not None) is is_known


def test_a_pool_without_a_rate_or_an_answer_has_no_volume() -> None:
    (line,) = found(30_000_000, bill=replace(BILL, pusd_per_hour=None))
    assert (line.tokens, line.state) == (None, "the GPU rate is not known")
    (line,) = found(30_000_000, replace(COST, tokens_in_slo=0, avoided_pusd=0))
    assert (line.tokens, line.state) == (None, "nothing was served inside the SLO")


def test_engines_that_cost_nothing_have_nothing_to_break_even() -> None:
    """Books at $0 an hour said that 0 tokens a month pay."""
    free = replace(BILL, pusd_per_hour=0, bill_pusd=0, used_pusd=0, idle_pusd=0,
                   unavailable_pusd=0, ops_pusd=Fraction(0))  # fmt: skip
    (line,) = found(30_000_000, bill=free)
    assert (line.tokens, line.state) == (None, FREE)
    (line,) = found(30_000_000, bill=replace(free, ops_pusd=Fraction(5 * USD)))
    assert line.tokens is not None, "ops are a cost"


def test_a_pool_that_has_served_nothing_is_not_told_to_name_an_api() -> None:
    """Comparisons come with answers: without one, nobody knows what `compare_with` names."""
    standing = fleet_economics([BILL], [], served=Volume(0, BOTH), capability=None)
    (line,) = month_evens({"llama": standing}, 744)
    assert line.state == "nothing was served inside the SLO"
    standing = fleet_economics([BILL], [], served=SERVED, capability=None)
    (line,) = month_evens({"llama": standing}, 744)
    assert line.state == "no API is compared with: name one in `compare_with`"
