"""Metrics of fleets: there before the first plan, and old when nobody plans."""

import pytest
from prometheus_client import CollectorRegistry

from gateway.clock import Clock
from gateway.telemetry.metrics.fleet import FleetMetrics
from ledger.fleet.scaling_notes import ScalingNote, write_scaling


@pytest.fixture
def values(tmp_path):
    registry = CollectorRegistry()
    registry.register(FleetMetrics(tmp_path, Clock(wall_us=lambda: 100_000_000)))

    def read(*notes: ScalingNote):
        write_scaling(tmp_path, list(notes))
        return registry.get_sample_value

    return read


def test_a_pool_has_its_series_before_its_first_plan(values):
    value = values(ScalingNote("chat", "advise", 3, 3, 0, seen_us=90_000_000))
    of = {"pool": "chat"}
    assert value("breakeven_fleet_wanted_engines", of) == 3
    assert value("breakeven_fleet_running_engines", of) == 3
    assert value("breakeven_fleet_plan_age_seconds", of) == 10
    assert value("breakeven_fleet_acts", of) == 0
    assert value("breakeven_fleet_changes_total", of | {"verb": "start"}) == 0
    assert value("breakeven_fleet_rent_usd_per_hour", of) is None  # not known is no zero


def test_what_is_known_is_told(values):
    value = values(
        ScalingNote(
            "chat", "act", 2, 1, 1, seen_us=100_000_000, held="paused by ann", rent_usd=2.5,
            next_usd=1.62, last_usd=3.91, starts=4, stops=1, inside=9, outside=2,
            findings={"orphan": 1, "stuck": 0}, parked=("pool:chat/3",),
        )
    )  # fmt: skip
    of = {"pool": "chat"}
    assert value("breakeven_fleet_held", of) == 1
    assert value("breakeven_fleet_parked", {"engine": "pool:chat/3"}) == 1
    assert value("breakeven_fleet_engine_value_usd_per_hour", of | {"engine": "next"}) == 1.62
    assert value("breakeven_fleet_findings", of | {"kind": "orphan"}) == 1
    assert value("breakeven_fleet_findings", of | {"kind": "stuck"}) == 0
    assert value("breakeven_fleet_forecasts_total", of | {"outcome": "outside"}) == 2
    assert value("breakeven_fleet_changes_total", of | {"verb": "start"}) == 4
