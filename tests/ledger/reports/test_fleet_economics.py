"""The verdict: bills against avoided API cost, for each comparator, with what is not known said."""

from dataclasses import replace
from fractions import Fraction

from ledger.economics.breakeven import CostDriver
from ledger.economics.cost import TokenBasis, Volume
from ledger.fleet.bills import PoolBill
from ledger.fleet.capability import CapabilitySource, FleetCapability
from ledger.queries.reads import ComparatorCost
from ledger.reports.fleet_economics import (
    ComparatorKind,
    chosen_comparisons,
    fleet_economics,
    rated_pools,
)

USD = 10**12
BOTH = TokenBasis.INPUT_OUTPUT
BILL = PoolBill(
    pool="llama", gpu_type="H200", gpus=1, replicas=1, pusd_per_hour=2 * USD, source="c",
    simulated=False, bill_pusd=20 * USD, used_pusd=8 * USD, idle_pusd=11 * USD,
    unavailable_pusd=USD, ops_pusd=Fraction(5 * USD), hours=Fraction(10),
    available_share=Fraction(9, 10),
)  # fmt: skip
UNRATED = replace(
    BILL, pool="tiny", pusd_per_hour=None, bill_pusd=0, used_pusd=0, idle_pusd=0,
    unavailable_pusd=0, ops_pusd=Fraction(0),
)  # fmt: skip
FOUND = [
    ComparatorCost("chat", "llama", 0, "openai/x", 20_000_000, 5_000_000, 40 * USD, 3 * USD, False),
    ComparatorCost("chat", "llama", 1, "dear/host", 20_000_000, 5_000_000, 9 * USD, 0, False),
    ComparatorCost("chat", "llama", 2, "cheap/host", 20_000_000, 5_000_000, 4 * USD, 0, True),
]
SERVED = Volume(20_000_000, BOTH)
CAPABLE = FleetCapability(Volume(30_000_000, BOTH), CapabilitySource.MEASURED)


def test_one_verdict_for_each_comparator() -> None:
    answer = fleet_economics([BILL], FOUND, served=SERVED, capability=CAPABLE)
    substitute, same = answer.verdicts
    assert answer.fixed.total_pusd == 25 * USD
    assert (substitute.against, substitute.comparators) == (
        ComparatorKind.SUBSTITUTE,
        ("openai/x",),
    )
    assert substitute.result_pusd == 15 * USD
    assert substitute.average.usd_per_million == 2
    assert substitute.even.volume == Volume(12_500_000, BOTH)
    assert substitute.even.feasible
    assert substitute.stands.ratio == Fraction(8, 5)
    assert (same.against, same.comparators, same.scaled) == (
        ComparatorKind.SAME_WEIGHTS, ("cheap/host",), True,
    )  # fmt: skip
    assert same.result_pusd == -21 * USD
    assert not same.even.feasible
    assert answer.per_month(-21 * USD) == -1_512 * USD


def test_a_gpu_that_pools_share_is_one_gpu_at_its_whole_rate() -> None:
    whole = fleet_economics([BILL], FOUND, served=SERVED, capability=CAPABLE)
    half = {"pusd_per_hour": USD, "bill_pusd": 10 * USD, "ops_pusd": Fraction(5 * USD, 2),
            "machine": "box", "share": Fraction(1, 2)}  # fmt: skip
    bills = [replace(BILL, **half), replace(BILL, pool="embed", **half)]
    shared = fleet_economics(bills, FOUND, served=SERVED, capability=CAPABLE)
    assert shared.fixed == whole.fixed
    assert shared.verdicts == whole.verdicts, "cures are of whole GPUs"


def test_requests_outside_the_slo_avoid_nothing_and_are_shown() -> None:
    answer = fleet_economics([BILL], FOUND, served=SERVED, capability=CAPABLE)
    assert answer.verdicts[0].missed_pusd == 3 * USD
    assert answer.verdicts[0].avoided_pusd == 40 * USD


def test_the_cure_of_a_rate_speaks_of_full_capacity() -> None:
    verdict = fleet_economics([BILL], FOUND, served=SERVED, capability=CAPABLE).verdicts[1]
    rate = next(cure.needed for cure in verdict.even.cures if cure.lever is CostDriver.GPU_RATE)
    assert rate == (Fraction(4 * USD, 20) * 30 - 5 * USD) / 10


def test_a_pool_without_a_rate_is_named_and_left_out() -> None:
    answer = fleet_economics([BILL, UNRATED], FOUND, served=SERVED, capability=CAPABLE)
    assert answer.unrated == ("tiny",)
    assert answer.fixed.total_pusd == 25 * USD
    assert rated_pools([BILL, UNRATED]) == {"llama"}


def test_with_no_rate_at_all_there_is_no_result() -> None:
    answer = fleet_economics([UNRATED], FOUND, served=SERVED, capability=CAPABLE)
    assert rated_pools([UNRATED]) == {"tiny"}
    verdict = answer.verdicts[0]
    assert (verdict.stands, verdict.even, verdict.result_pusd) == (None, None, None)
    assert answer.per_month(USD) is None


def test_nothing_served_loses_the_whole_bill() -> None:
    nothing = [replace(FOUND[0], tokens_in_slo=0, output_tokens_in_slo=0, avoided_pusd=0)]
    answer = fleet_economics([BILL], nothing, served=Volume(0, BOTH), capability=None)
    assert answer.verdicts[0].average is None
    assert answer.verdicts[0].result_pusd == -25 * USD
    assert fleet_economics([BILL], [], served=Volume(0, BOTH), capability=None).verdicts == ()


def test_output_only_uses_output_tokens_everywhere() -> None:
    output = TokenBasis.OUTPUT
    served = Volume(5_000_000, output)
    capable = FleetCapability(Volume(8_000_000, output), CapabilitySource.MEASURED)
    verdict = fleet_economics([BILL], FOUND, served=served, capability=capable).verdicts[0]
    assert verdict.average.usd_per_million == 8
    assert verdict.even.volume == Volume(3_125_000, output)
    assert verdict.result_pusd == 15 * USD, "money does not depend on the basis"


def test_the_cheapest_host_is_chosen_per_model() -> None:
    other = [replace(item, model="code", avoided_pusd=item.avoided_pusd * 2) for item in FOUND]
    other[1] = replace(other[1], avoided_pusd=1)
    chosen = chosen_comparisons([*FOUND, *other], ComparatorKind.SAME_WEIGHTS)
    assert [(choice.model, choice.comparator) for choice in chosen] == [
        ("chat", "cheap/host"), ("code", "dear/host"),
    ]  # fmt: skip


def test_a_cure_by_rate_counts_the_hours_that_are_billed() -> None:
    """GPUs on demand that ran in half of the hours could pay twice the rate that was named."""
    full = fleet_economics([BILL], FOUND, served=SERVED, capability=CAPABLE).verdicts[1].even
    resting = replace(BILL, pusd_per_hour=4 * USD, billed_share=Fraction(1, 2))
    half = fleet_economics([resting], FOUND, served=SERVED, capability=CAPABLE).verdicts[1].even
    assert half.volume == full.volume, "the bill is the same"
    rates = [
        next(fix.needed for fix in even.cures if fix.lever is CostDriver.GPU_RATE)
        for even in (full, half)
    ]
    assert rates[0] is not None
    assert rates[1] == 2 * rates[0]
    never = fleet_economics(
        [replace(resting, bill_pusd=0, billed_share=Fraction(0))], FOUND, served=SERVED,
        capability=CAPABLE,
    )  # fmt: skip
    assert all(fix.lever is not CostDriver.GPU_RATE or not fix.needed
               for fix in never.verdicts[1].even.cures)  # fmt: skip
