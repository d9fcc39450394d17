"""An instance costs rent from its asking to its end."""

from dataclasses import replace

from ledger.economics.scaling_score import InstanceRent
from ledger.fleet.fleet_records import FleetInstance

S = 1_000_000
ENGINE = FleetInstance("t", "p", 0, True, InstanceRent(3600 * 10**12), 100 * S)


def test_rent_ends_with_the_instance_and_not_before():
    assert ENGINE.rent_pusd(0, 160 * S) == 60 * 10**12
    assert replace(ENGINE, stop_us=110 * S, told_us=120 * S).rent_pusd(0, 160 * S) == 60 * 10**12
    assert replace(ENGINE, gone_us=130 * S).rent_pusd(0, 160 * S) == 30 * 10**12
    assert replace(ENGINE, gone_us=130 * S).rent_pusd(130 * S, 160 * S) == 0
    assert ENGINE.rent_pusd(0, 50 * S) == 0


def test_a_plan_counts_on_what_it_owns_and_does_not_stop():
    assert ENGINE.is_live
    for change in ({"owned": False}, {"stop_us": 1}, {"gone_us": 1}):
        assert not replace(ENGINE, **change).is_live
