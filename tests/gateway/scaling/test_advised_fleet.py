"""Engines that advice would have: they start late, cost from the asking, and are scored."""

from gateway.scaling import advised_fleet
from ledger.economics.scaling_score import InstanceRent

S = 1_000_000
RENT = InstanceRent(3600 * 10**12)


def test_a_fleet_follows_its_plans_and_ends_with_the_named_and_the_youngest():
    fleet = advised_fleet.begin(2, 0)
    fleet = advised_fleet.follow(fleet, 4, (), now_us=10 * S, start_us=5 * S)
    assert [engine.ready_us for engine in fleet] == [0, 0, 15 * S, 15 * S]
    assert fleet[2].serves(15 * S, 20 * S)
    assert not fleet[2].serves(14 * S, 20 * S)
    fleet = advised_fleet.follow(fleet, 2, ("advised.0",), now_us=30 * S, start_us=5 * S)
    gone = [engine.token for engine in fleet if engine.gone_us is not None]
    assert gone == ["advised.0", fleet[2].token]
    assert len(advised_fleet.leases(fleet)) == 2
    assert fleet[2].rent_pusd(RENT, 0, 100 * S) == 20 * 10**12
    assert len(advised_fleet.forget_scored(fleet, 29 * S)) == 4
    assert len(advised_fleet.forget_scored(fleet, 30 * S)) == 2
    assert advised_fleet.restored(advised_fleet.stored(fleet)) == fleet


def test_an_engine_that_drains_serves_no_more_and_still_costs():
    fleet = advised_fleet.begin(1, 0)
    (engine,) = advised_fleet.follow(fleet, 0, (), now_us=30 * S, start_us=0, drain_us=10 * S)
    assert engine.serves(20 * S, 30 * S)
    assert not engine.serves(25 * S, 35 * S)
    assert engine.rent_pusd(RENT, 0, 100 * S) == 40 * 10**12
    assert advised_fleet.leases([engine]) == ()
