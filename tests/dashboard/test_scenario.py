"""A scenario starts from the sheet: nothing changed is the same verdict, each change its own."""

from dataclasses import replace
from fractions import Fraction

from dashboard.planning import pool_ways
from dashboard.scenario import ScenarioChange, changed
from ledger.economics.assumptions import (
    AssumptionSheet,
    AssumptionSource,
    ModelAssumption,
    ModelResidency,
    PoolAssumptions,
)
from ledger.economics.fleet_verdict import FleetVerdict, judge
from ledger.economics.purchase import Commitment
from ledger.economics.value_curve import TrafficClass, TrafficWindow, ValueCurve
from ledger.money import PUSD_PER_USD

POOL = PoolAssumptions(
    "p", 2, Fraction(720), PUSD_PER_USD // 2, capacity_per_minute=10_000,
    models=(
        ModelAssumption("chat", ModelResidency.MAY_LEAVE, "a/x", 2_000_000),
        ModelAssumption("inside", ModelResidency.MAY_NOT_LEAVE, None, None),
    ),
)  # fmt: skip
CURVE = ValueCurve(
    (TrafficClass("chat", 2_000_000, True), TrafficClass("inside", None, False)),
    (TrafficWindow((14_000, 3_000), (2_000, 0), 10_800),),
    2,
    10_000,
    (43_200_000_000_000, 0),
)
BASE = judge(AssumptionSheet((POOL,)), {"p": CURVE})


def best(found: FleetVerdict) -> tuple[int, Fraction]:
    return found.gpus, found.total_pusd(best=True)


def test_without_a_change_it_is_the_verdict_itself() -> None:
    found = changed(BASE, "p", ScenarioChange())
    assert best(found) == best(BASE)
    assert found.sheet.version == BASE.sheet.version
    assert ScenarioChange().names == []


def test_each_change_is_named_and_marked_as_entered() -> None:
    change = ScenarioChange(pusd_per_hour=PUSD_PER_USD, ops_pusd_per_week=7, month_hours=744)
    found = changed(BASE, "p", change)
    assert change.names == ["GPU rate", "ops", "month"]
    (pool,) = found.sheet.pools
    assert (pool.rate_source, pool.ops_source) == (AssumptionSource.ENTERED,) * 2
    assert (pool.rate_origin, pool.ops_origin) == ("this scenario",) * 2
    assert found.sheet.month_hours == 744
    assert found.sheet.version != BASE.sheet.version


def test_prices_volume_and_capacity_move_what_they_should() -> None:
    now = BASE.pools[0].now.api_pusd
    for change, factor in (
        (ScenarioChange(price_factor=Fraction(2)), 2),
        (ScenarioChange(volume_factor=Fraction(3)), 3),
        (ScenarioChange(capacity_factor=Fraction(2)), 1),
    ):
        assert changed(BASE, "p", change).pools[0].now.api_pusd == now * factor
    wide = changed(BASE, "p", ScenarioChange(capacity_factor=Fraction(2)))
    assert wide.gpus == 1, "one engine holds what two did"


def test_what_is_declared_movable_is_priced_and_may_leave() -> None:
    found = changed(BASE, "p", ScenarioChange(movable={"inside": 1_000_000}))
    assert found.pools[0].stays == ()
    assert found.sheet.pools[0].models[1].residency is ModelResidency.DECLARED_MOVABLE
    assert found.pools[0].options[0].allowed
    unpriced = replace(POOL.models[1], pusd_per_token=None)
    assert not unpriced.pusd_per_token


def test_a_commitment_is_paid_in_every_hour() -> None:
    """On demand for half of the hours: a third off is dearer, since no night is free."""
    pool = replace(POOL, billed_share=Fraction(1, 2))
    found = judge(AssumptionSheet((pool,)), {"p": CURVE})
    today, reserved = pool_ways(found, "p", [Commitment(12, Fraction(1, 3))])
    assert today.verdict.pools[0].options[2].gpu_pusd == 360 * PUSD_PER_USD
    assert reserved.verdict.pools[0].options[2].gpu_pusd == 480 * PUSD_PER_USD
