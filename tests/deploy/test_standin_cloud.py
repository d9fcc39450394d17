"""The tests' cloud bills what it started, whatever it answers."""

import pytest

from deploy.standin_cloud import START_US, StandinCloud
from gateway.scaling.actuator import ActuatorError


def test_an_engine_is_billed_from_its_start_and_serves_later():
    now = [0]
    cloud = StandinCloud(lambda: now[0])
    cloud.start("p.0.k", 0)
    cloud.start("p.0.k", 0)
    assert [engine.token for engine in cloud.running] == ["p.0.k"]
    assert cloud.serving() == frozenset()
    now[0] = START_US
    assert cloud.serving() == frozenset({0})
    cloud.stop("p.0.k", 0)
    assert (cloud.running, cloud.engines[0].until_us) == ([], START_US)


def test_each_fault_is_one_of_real_clouds():
    cloud = StandinCloud(lambda: 0)
    cloud.faults.hangs_before = True
    with pytest.raises(ActuatorError):
        cloud.start("p.0.k", 0)
    assert cloud.engines == []
    cloud.faults.hangs_before, cloud.faults.hangs_after = False, True
    with pytest.raises(ActuatorError):
        cloud.start("p.0.k", 0)
    assert len(cloud.engines) == 1
    cloud.faults.hangs_after, cloud.faults.starts_two = False, True
    cloud.start("p.1.k", 1)
    assert len(cloud.engines) == 3
    cloud.faults.forgets = {"p.1.k"}
    assert [item.token for item in cloud.list()] == ["p.0.k"]
