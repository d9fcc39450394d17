"""Engines of this machine by orders and tags; those of `serve` are tried beside it."""

from types import SimpleNamespace

import pytest

from gateway.fleet.scaled_seats import SeatTag, read_tags
from gateway.scaling.actuator import ActuatorError, ListedInstance
from gateway.scaling.supervisor_actuator import SupervisorActuator


@pytest.fixture
def host(tmp_path):
    words = ["healthy", "resting", "loading", "healthy"]
    seats = [
        SimpleNamespace(name="pool:p/0", pool="p", managed=True),
        SimpleNamespace(name="pool:p/1", pool="p", managed=True),
        SimpleNamespace(name="pool:p/2", pool="p", managed=False),
        SimpleNamespace(name="pool:q/0", pool="q", managed=True),
    ]
    orders: list[tuple[int, str]] = []
    return SimpleNamespace(
        runtime=SimpleNamespace(engines=seats, state_dir=str(tmp_path)),
        snapshot=lambda row: SimpleNamespace(word=words[row], seat=seats[row]),
        order=lambda row, verb: orders.append((row, verb)),
        orders=orders, words=words,
    )  # fmt: skip


def test_a_tag_is_written_before_its_order_and_names_what_runs(host, tmp_path):
    actuator = SupervisorActuator(host, "p")
    assert actuator.list() == [ListedInstance("pool:p/0", None, 0)]
    actuator.start("p.1.k", 1)
    host.words[1] = "starting"
    assert actuator.list() == [
        ListedInstance("pool:p/0", None, 0), ListedInstance("pool:p/1", "p.1.k", 1),
    ]  # fmt: skip
    actuator.stop("p.1.k", 1)
    assert host.orders == [(1, "wake"), (1, "rest")]
    assert read_tags(tmp_path, "p") == {1: SeatTag("p.1.k", False)}


def test_a_stop_of_another_life_ends_nothing(host):
    actuator = SupervisorActuator(host, "p")
    actuator.start("p.1.new", 1)
    actuator.stop("p.1.old", 1)
    assert host.orders == [(1, "wake")]


def test_places_that_are_not_there_are_refused(host):
    with pytest.raises(ActuatorError, match="pool p has no engine 2 on this machine"):
        SupervisorActuator(host, "p").start("p.2.k", 2)
