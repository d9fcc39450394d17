"""GPU hours as FOCUS: what is billed and what is effective are both the bill, to the unit."""

from fractions import Fraction

import pytest

from ledger.exports.focus_gpu import gpu_charges
from ledger.fleet.hourshares import HourContract, HourShare

RATE = 9_800_000_000_000


def contract(billing: str, rate: int = RATE) -> HourContract:
    return HourContract(7, "chat", "H200", 2, billing, rate, "contract 17", simulated=False)


SHARES = [
    HourShare(0, "chat", 7, "used", "search", 3_333_333_333_333, 600_000_000),
    HourShare(0, "chat", 7, "used", "ads", 1, 0),
    HourShare(0, "chat", 7, "idle", None, 10**13, 2_400_000_000),
    HourShare(0, "chat", 7, "unavailable", None, 0, 0),
]
BILL = sum(share.pusd for share in SHARES)


def charged(billing: str, *, purchases: bool = True) -> list[dict]:
    return [row for _, row in gpu_charges(SHARES, {7: contract(billing)}, purchases=purchases)]


@pytest.mark.parametrize("billing", ["reserved", "owned", "on_demand"])
def test_both_costs_are_the_bill(billing: str) -> None:
    rows = charged(billing)
    assert sum(row["BilledCost"] for row in rows) == BILL
    assert sum(row["EffectiveCost"] for row in rows) == BILL
    for row in rows:
        assert row["ListCost"] == row["ContractedCost"] == row["PricingQuantity"] * RATE


def test_a_reserved_pool_is_bought_and_its_usage_spread() -> None:
    *usage, purchase = charged("reserved")
    assert (purchase["ChargeCategory"], purchase["ChargeFrequency"]) == ("Purchase", "Recurring")
    assert (purchase["BilledCost"], purchase["EffectiveCost"]) == (BILL, 0)
    assert "ConsumedQuantity" not in purchase
    states = [(row["x_Bearer"], row["CommitmentDiscountStatus"]) for row in usage]
    assert states == [("used", "Used"), ("used", "Used"), ("idle", "Unused")]
    assert {row["BilledCost"] for row in usage} == {0}
    assert usage[0]["ConsumedQuantity"] == Fraction(2 * 600, 3600)
    assert usage[2]["ConsumedQuantity"] is None
    assert [row.get("SubAccountId") for row in usage] == ["search", "ads", None]


def test_on_demand_the_usage_is_billed_itself() -> None:
    rows = charged("on_demand")
    assert {row["ChargeCategory"] for row in rows} == {"Usage"}
    assert all(row["BilledCost"] == row["EffectiveCost"] for row in rows)
    assert all("CommitmentDiscountId" not in row for row in rows)


def test_without_purchases_the_bill_is_left_out() -> None:
    rows = charged("reserved", purchases=False)
    assert sum(row["BilledCost"] for row in rows) == 0
    assert sum(row["EffectiveCost"] for row in rows) == BILL


def test_a_pool_that_costs_nothing_has_the_hours_that_were_measured() -> None:
    shares = [HourShare(0, "chat", 7, "used", "search", 0, 3_600_000_000)]
    ((_, row),) = gpu_charges(shares, {7: contract("owned", 0)}, purchases=True)
    assert (row["PricingQuantity"], row["BilledCost"]) == (2, 0)
